"""The models whose training step is timed, per rank."""

import dataclasses

NORM_EPS, ROPE_THETA = 1e-5, 500000.0


@dataclasses.dataclass(frozen=True)
class Shape:
    dim: int
    ffn: int
    heads: int
    kv_heads: int
    layers: int
    vocab: int
    batch: int
    seq: int


MODELS = {
    # Small products: launches, attention and pointwise work show.
    "S": Shape(dim=512, ffn=1536, heads=8, kv_heads=8, layers=8, vocab=256,
               batch=8, seq=256),
    # Two layers of Llama 3.2 1B, few tokens: weights, their communication and
    # the optimizer show.
    "L": Shape(dim=2048, ffn=8192, heads=32, kv_heads=8, layers=2, vocab=8192,
               batch=1, seq=512),
}
