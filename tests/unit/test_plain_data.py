"""The data that users are handed: how it is read, and what of the reference's older ways still works."""

from __future__ import annotations

import pytest

from pregel.types import GraphOutput, Interrupt
from pregel.warnings import LangGraphDeprecatedSinceV10, LangGraphDeprecatedSinceV11


@pytest.mark.filterwarnings("ignore:.*deprecated")
def test_an_output_is_still_read_as_the_dict_that_it_was() -> None:
    question = Interrupt("why?", "1")
    output = GraphOutput({"a": 1}, (question,))

    assert (1, (question,)) == (output["a"], output["__interrupt__"])
    assert (True, True, False) == ("a" in output, "__interrupt__" in output, "b" in output)
    assert "__interrupt__" not in GraphOutput({"a": 1})


def test_older_ways_are_warned_about() -> None:
    with pytest.warns(LangGraphDeprecatedSinceV11, match="GraphOutput"):
        GraphOutput({"a": 1})["a"]
    with pytest.warns(LangGraphDeprecatedSinceV11, match="GraphOutput"):
        assert "a" in GraphOutput({"a": 1})
    with pytest.warns(LangGraphDeprecatedSinceV10, match="interrupt_id"):
        assert "1" == Interrupt("why?", "1").interrupt_id
