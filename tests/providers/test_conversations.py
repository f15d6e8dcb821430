"""Random conversations of agents through the adapters: whatever happens in them, no request is refused."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from .service import Conversation, Service
from .talk import TURNS, Talk, adapter, script

PROVIDERS = {"openai": ["openai"], "anthropic": ["anthropic"], "both": ["openai", "anthropic"]}
EVENTS = (
    "answered",
    "ignored",
    "approve",
    "edit",
    "reject",
    "respond",
    "dangling",
    "removed",
    "model error",
    "cut off",
)


def refusals(service: Service, providers: list[str], seed: int, happened: Counter[str]) -> list[str]:
    """Play the conversation of a seed; why requests of it were refused."""
    chance = random.Random(seed)
    talks = [_scripted(service, provider, chance) for provider in providers]
    summaries = service.conversation().will_say(*[{"text": f"Summary {n}.", "split": n} for n in range(TURNS)])
    models = [adapter(provider, talk) for provider, talk in zip(providers, talks, strict=True)]
    Talk(chance, models, adapter(providers[-1], summaries), happened).play()
    happened["requests"] += sum(len(talk.log) for talk in talks)
    happened["summaries"] += len(summaries.log)
    return [why for talk in (*talks, summaries) for why in talk.refused]


def _scripted(service: Service, provider: str, chance: random.Random) -> Conversation:
    return service.conversation().will_say(*script(chance, unreadable=provider == "openai"))


@pytest.mark.parametrize("providers", PROVIDERS.values(), ids=PROVIDERS)
def test_no_request_of_a_few_conversations_is_refused(service: Service, providers: list[str]) -> None:
    happened: Counter[str] = Counter()
    for seed in range(3):
        assert [] == refusals(service, providers, seed, happened), f"seed {seed}"
    assert happened["requests"] > 10


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("first", range(0, 200, 50))
@pytest.mark.parametrize("providers", PROVIDERS.values(), ids=PROVIDERS)
def test_no_request_of_two_hundred_conversations_is_refused(service: Service, providers: list[str], first: int) -> None:
    happened: Counter[str] = Counter()
    for seed in range(first, first + 50):
        assert [] == refusals(service, providers, seed, happened), f"seed {seed}"
    assert [] == [event for event in (*EVENTS, "summaries") if not happened[event]], happened
