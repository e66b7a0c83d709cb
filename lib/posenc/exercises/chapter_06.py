"""Exercises of chapter 6, Relative encodings."""

import math

import numpy as np
import torch
from torch import Tensor

from posenc.attention import causal_mask, scaled_dot_product_attention
from posenc.encodings import apply_rotary, sinusoidal_encoding
from posenc.exercises.engine import Choice, Function, Mistake, Open, Value, as_array

_random = torch.Generator().manual_seed(6)


def _draw(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=_random, dtype=torch.float64)


# 6.1 one pair by hand


def _turned(x: float, y: float, degrees: float) -> tuple[float, float]:
    c, s = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
    return c * x - s * y, s * x + c * y


def _by_hand(query_turn: float, key_turn: float) -> list[float]:
    """The turned query, and its product with the turned key."""
    (a, b), (c, d) = _turned(2, 1, query_turn), _turned(3, 1, key_turn)
    return [a, b, a * c + b * d]


_RIGHT_BY_HAND = _by_hand(90, 30)


def _with_score(score: float) -> list[float]:
    return [*_RIGHT_BY_HAND[:2], score]


# 6.2 rotary, in halves


def _angles(x: Tensor, start: int, base: float) -> Tensor:
    length, d = x.shape[-2:]
    position = torch.arange(start, start + length, dtype=torch.float64)
    return position[:, None] * base ** (-2 * torch.arange(d // 2, dtype=torch.float64) / d)


def _halves(x: Tensor, angle: Tensor, sign: float = 1.0) -> Tensor:
    a, b = x.chunk(2, dim=-1)
    return torch.cat([a * angle.cos() - sign * b * angle.sin(), a * angle.sin() + sign * b * angle.cos()], dim=-1)


def rotary(x: Tensor, start: int, base: float) -> Tensor:
    return _halves(x, _angles(x, start, base))


def _rotary_without_minus(x: Tensor, start: int, base: float) -> Tensor:
    (a, b), angle = x.chunk(2, dim=-1), _angles(x, start, base)
    return torch.cat([a * angle.cos() + b * angle.sin(), a * angle.sin() + b * angle.cos()], dim=-1)


def _rotary_in_place_of_the_first_half(x: Tensor, start: int, base: float) -> Tensor:
    (a, b), angle = x.chunk(2, dim=-1), _angles(x, start, base)
    a = a * angle.cos() - b * angle.sin()
    return torch.cat([a, a * angle.sin() + b * angle.cos()], dim=-1)


def _rotary_with_sine_first(x: Tensor, start: int, base: float) -> Tensor:
    return _halves(x, torch.pi / 2 - _angles(x, start, base))


def _adding_a_code(x: Tensor, start: int, base: float) -> Tensor:
    return x + sinusoidal_encoding(*x.shape[-2:], base, "concat", start, torch.float64)


def _rotary_halves_in_neighbours_out(x: Tensor, start: int, base: float) -> Tensor:
    return torch.stack(rotary(x, start, base).chunk(2, dim=-1), dim=-1).flatten(-2)


def _rotary_at_one_speed(x: Tensor, start: int, base: float) -> Tensor:
    return _halves(x, _angles(x, start, base)[:, :1].expand(-1, x.shape[-1] // 2))


# 6.4 a relative bias for a cache


def _offsets(query_length: int, key_length: int, start: int) -> Tensor:
    return torch.arange(key_length) - torch.arange(start, start + query_length)[:, None]


def bias_for(table: Tensor, query_length: int, key_length: int) -> Tensor:
    clip = table.shape[1] // 2
    return table[:, _offsets(query_length, key_length, key_length - query_length).clamp(-clip, clip) + clip]


def _bias_from_the_start(table: Tensor, query_length: int, key_length: int) -> Tensor:
    clip = table.shape[1] // 2
    return table[:, _offsets(query_length, key_length, 0).clamp(-clip, clip) + clip]


def _bias_at(table: Tensor, offset: Tensor, early: int = 0) -> Tensor:
    clip = table.shape[1] // 2
    return table[:, offset.clamp(early - clip, clip - early) + clip]


def _bias_that_wraps(table: Tensor, query_length: int, key_length: int) -> Tensor:
    clip = table.shape[1] // 2
    return table[:, _offsets(query_length, key_length, key_length - query_length).clamp(max=clip) + clip]


def _bias_that_ends(table: Tensor, query_length: int, key_length: int) -> Tensor:
    offset = _offsets(query_length, key_length, key_length - query_length)
    return bias_for(table, query_length, key_length) * (offset.abs() <= table.shape[1] // 2)


# 6.6 several new tokens and a cache


def extend(
    past_keys: Tensor,
    past_values: Tensor,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    query_start: int | None = None,
    key_start: int | None = None,
    mask: Tensor | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """The right answer, with what readers get wrong as arguments."""
    past, new = len(past_keys), len(query)
    query = apply_rotary(query, start=past if query_start is None else query_start)
    keys = torch.cat([past_keys, apply_rotary(key, start=past if key_start is None else key_start)])
    values = torch.cat([past_values, value])
    allowed = causal_mask(past + new)[past:] if mask is None else mask
    return scaled_dot_product_attention(query, keys, values, allowed)[0], keys, values


def _seeing_everything(past_keys: Tensor, past_values: Tensor, query: Tensor, key: Tensor, value: Tensor) -> tuple:
    everything = torch.ones(len(query), len(past_keys) + len(query), dtype=torch.bool)
    return extend(past_keys, past_values, query, key, value, mask=everything)


def _with_the_first_rows(past_keys: Tensor, past_values: Tensor, query: Tensor, key: Tensor, value: Tensor) -> tuple:
    rows = causal_mask(len(past_keys) + len(query))[: len(query)]
    return extend(past_keys, past_values, query, key, value, mask=rows)


def _turning_all_keys(past_keys: Tensor, past_values: Tensor, query: Tensor, key: Tensor, value: Tensor) -> tuple:
    past = len(past_keys)
    keys = apply_rotary(torch.cat([past_keys, key]))
    values = torch.cat([past_values, value])
    mask = causal_mask(len(keys))[past:]
    return scaled_dot_product_attention(apply_rotary(query, start=past), keys, values, mask)[0], keys, values


def _cache_as_it_was(past_keys: Tensor, past_values: Tensor, query: Tensor, key: Tensor, value: Tensor) -> tuple:
    return extend(past_keys, past_values, query, key, value)[0], past_keys, past_values


def _new_ones_first(past_keys: Tensor, past_values: Tensor, query: Tensor, key: Tensor, value: Tensor) -> tuple:
    output, keys, values = extend(past_keys, past_values, query, key, value)
    return output, keys.roll(len(query), dims=0), values.roll(len(query), dims=0)


def _forgetting_the_cache(past_keys: Tensor, past_values: Tensor, query: Tensor, key: Tensor, value: Tensor) -> tuple:
    alone = _lower_mask(past_keys, past_values, query) & (torch.arange(len(past_keys) + len(query)) >= len(past_keys))
    return extend(past_keys, past_values, query, key, value, mask=alone)


def _lower_mask(past_keys: Tensor, past_values: Tensor, query: Tensor, *_: Tensor, diagonal: int = 0) -> Tensor:
    """What the new tokens may see, or with another diagonal what they see by a slip."""
    past, new = len(past_keys), len(query)
    return torch.ones(new, past + new, dtype=torch.bool).tril(past + diagonal)


def _masking_the_weights(past_keys: Tensor, past_values: Tensor, query: Tensor, key: Tensor, value: Tensor) -> tuple:
    _, keys, values = extend(past_keys, past_values, query, key, value)
    scores = apply_rotary(query, start=len(past_keys)) @ keys.T / math.sqrt(query.shape[-1])
    return (scores.softmax(dim=-1) * _lower_mask(past_keys, past_values, query)) @ values, keys, values


def _scoring(past_keys: Tensor, past_values: Tensor, query: Tensor, key: Tensor, value: Tensor) -> tuple:
    """Queries and keys as they come."""
    keys, values = torch.cat([past_keys, key]), torch.cat([past_values, value])
    mask = causal_mask(len(keys))[len(past_keys) :]
    return scaled_dot_product_attention(query, keys, values, mask)[0], keys, values


def _unscaled(past_keys: Tensor, past_values: Tensor, query: Tensor, key: Tensor, value: Tensor) -> tuple:
    return extend(past_keys, past_values, query * math.sqrt(query.shape[-1]), key, value)


def _new_ones_only(past_keys: Tensor, past_values: Tensor, query: Tensor, key: Tensor, value: Tensor) -> tuple:
    output, keys, values = extend(past_keys, past_values, query, key, value)
    return output, keys[len(past_keys) :], values[len(past_values) :]


def _turning_values(past_keys: Tensor, past_values: Tensor, query: Tensor, key: Tensor, value: Tensor) -> tuple:
    return extend(past_keys, past_values, query, key, apply_rotary(value, start=len(past_keys)))


def _keeping_plain_keys(past_keys: Tensor, past_values: Tensor, query: Tensor, key: Tensor, value: Tensor) -> tuple:
    output, _, values = extend(past_keys, past_values, query, key, value)
    return output, torch.cat([past_keys, key]), values


def _in_halves(past_keys: Tensor, past_values: Tensor, query: Tensor, key: Tensor, value: Tensor) -> tuple:
    query, key = (apply_rotary(x, start=len(past_keys), layout="concat") for x in (query, key))
    return _scoring(past_keys, past_values, query, key, value)


# 6.8 the other half of the pair


def key_map(A: Tensor, s: int) -> Tensor:
    return torch.linalg.matrix_power(A, -s).T


# 6.9 point five places back

WIDTH, BACK, REACH = 16, 5, 63


def _examine_pointer(answer: object) -> str | None:
    if isinstance(answer, (tuple, list)) and len(answer) != 2:
        return f"should be two vectors, a query and a key, not {len(answer)} things"
    pair = as_array(answer)
    if pair is None or pair.ndim < 2 or pair.shape[0] != 2 or pair.size != 2 * WIDTH:
        found = "something else" if pair is None else f"shape {pair.shape}"
        return f"should be a query and a key of {WIDTH} numbers each, not {found}"
    pair = torch.from_numpy(pair.astype(float).reshape(2, WIDTH))
    if not torch.isfinite(pair).all():
        return "contains NaN or infinity"
    if pair.abs().max() > 1e6:
        return "keep the numbers below a million: rounding would hide what is tested"
    query, key = pair
    scores = apply_rotary(key.expand(2 * REACH + 1, WIDTH), start=-REACH) @ query
    best = int(scores.argmax()) - REACH
    if scores.max() <= 1e-9:
        return "no score is above zero"
    if best == BACK:
        return "the largest score is at offset +5, five places after the query: the turn went the wrong way"
    if best != -BACK:
        return f"the largest score is at offset {best:+d}, not at -5"
    others = scores.clone()
    others[REACH - BACK] = -math.inf
    lead = float(1 - others.max() / scores.max())
    if lead < 0.03:
        return f"offset -5 is ahead of offset {int(others.argmax()) - REACH:+d} by only {lead:.1%} of the largest score"
    return None


def _pointer(back: int, layout: str = "interleaved", columns: slice = slice(None)) -> Tensor:
    key = torch.zeros(1, WIDTH, dtype=torch.float64)
    key[:, columns] = 1.0
    return torch.cat([apply_rotary(key, start=-back, layout=layout), key])


_SPEAKS_OF_HALVES = _examine_pointer(_pointer(5, "concat"))
_SPEAKS_OF_ONE_CLOCK = _examine_pointer(_pointer(5, columns=slice(0, 2)))


EXERCISES = [
    Value(
        "6.1",
        "For the score it is enough to turn one of the two, by the offset.",
        _RIGHT_BY_HAND,
        tolerance=0.01,
        mistakes=[
            Mistake("both were turned clockwise; counterclockwise sends (1, 0) to (0, 1) after 90°.", _by_hand(-90, -30)),
            Mistake(
                "the turned query is right, the score is that of the offset +2: the key stands before the query, so it"
                " is turned by -60°.",
                _with_score(_by_hand(0, 60)[2]),
            ),
            Mistake("the turned query is right; for the score the key must be turned as well.", _by_hand(90, 0)),
            Mistake(
                "the turned query is right, the score is that of the two before turning.", _with_score(_by_hand(0, 0)[2])
            ),
            Mistake(
                "the turned query is right; the score was divided by √2, and the card asks for the plain dot product.",
                _with_score(_RIGHT_BY_HAND[2] / math.sqrt(2)),
            ),
            Mistake(
                "the turned query is right; for the score the angles were added. Turning both leaves the difference of"
                " their positions.",
                _with_score(_by_hand(0, 120)[2]),
            ),
            Mistake("the score is right; the query was turned clockwise.", [1, -2, _RIGHT_BY_HAND[2]]),
            Mistake("the score is right; the first two numbers should be those of the query after its turn.",
                    [2, 1, _RIGHT_BY_HAND[2]]),
            Mistake("the score is right; counterclockwise by 90° sends (x, y) to (-y, x).", [-2, 1, _RIGHT_BY_HAND[2]]),
        ],
    ),
    Function(
        "6.2",
        "Two halves, four products: this is all of RoPE.",
        rotary,
        cases=[(_draw(7, 8), 3, 10000.0), (_draw(2, 3, 5, 6), -2, 100.0), (_draw(4, 10), 0, 10000.0)],
        mistakes=[
            Mistake(
                "a correct turn in the other layout: neighbours were paired. Here pair i is columns i and i + d/2.",
                lambda x, start, base: apply_rotary(x, start, base),
            ),
            Mistake("every pair turns clockwise: the minus belongs to the first of the two columns.",
                    lambda x, start, base: _halves(x, -_angles(x, start, base))),
            Mistake("the minus is missing: this does not keep lengths.", _rotary_without_minus),
            Mistake("both columns have a minus: this is a mirror image and not a turn.",
                    lambda x, start, base: _halves(x, _angles(x, start, base), sign=-1.0)),
            Mistake("the rows are turned as if the first stood at position 0; use start.",
                    lambda x, start, base: rotary(x, 0, base)),
            Mistake("every row is turned by the same angle, that of position start; row t stands at start + t.",
                    lambda x, start, base: _halves(x, _angles(x, start, base)[:1])),
            Mistake("the base is fixed at 10000; use the argument.", lambda x, start, base: rotary(x, start, 10000.0)),
            Mistake("the exponent of pair i is -2i/d; the 2 is missing.",
                    lambda x, start, base: _halves(x, _angles(x, start, math.sqrt(base)))),
            Mistake("the frequencies rise from 1 instead of falling: the exponent has lost its minus sign.",
                    lambda x, start, base: rotary(x, start, 1 / base)),
            Mistake("the exponent of pair i is -2i/d; here d/2 stands in the place of d.",
                    lambda x, start, base: _halves(x, _angles(x, start, base**2))),
            Mistake(
                "the turned columns come back as neighbours; pair i goes back to columns i and i + d/2.",
                _rotary_halves_in_neighbours_out,
            ),
            Mistake("all pairs turn at the speed of the first; pair i has a frequency of its own.", _rotary_at_one_speed),
            Mistake(
                "the second column is computed from the first after it was turned; both need the old values.",
                _rotary_in_place_of_the_first_half,
            ),
            Mistake("nothing is turned.", lambda x, start, base: x),
            Mistake("positions are counted from 1: the first row stands at position start.",
                    lambda x, start, base: rotary(x, start + 1, base)),
            Mistake("pairs are counted from 1: pair 0 has the frequency 1.",
                    lambda x, start, base: _halves(x, _angles(x, start, base) * base ** (-2 / x.shape[-1]))),
            Mistake("sine and cosine are exchanged: at position 0 nothing should change.", _rotary_with_sine_first),
            Mistake("the sinusoidal code is added; the pairs of columns should be turned.", _adding_a_code),
            Mistake("the angles are taken for degrees: sin and cos want radians, and position times frequency is in radians.",
                    lambda x, start, base: _halves(x, torch.rad2deg(_angles(x, start, base)))),
            Mistake("the pairs are on an axis of their own; put the first columns, then the second ones, back into d columns.",
                    lambda x, start, base: torch.stack(rotary(x, start, base).chunk(2, dim=-1), dim=-1)),
        ],
    ),
    Value(
        "6.3",
        "Not sorted, and not a mistake: four heads' slopes, and two from the spaces between them.",
        [2.0**-2, 2.0**-4, 2.0**-6, 2.0**-8, 2.0**-1, 2.0**-3],
        tolerance=1e-5,
        mistakes=[
            Mistake(
                "that is 2^(-8h/6), the rule for powers of two applied to six. Begin with the slopes of four heads.",
                [2 ** (-8 * h / 6) for h in range(1, 7)],
            ),
            Mistake(
                "these are the right slopes, but sorted; the rule's own order has those of four heads first.",
                [2.0**-1, 2.0**-2, 2.0**-3, 2.0**-4, 2.0**-6, 2.0**-8],
            ),
            Mistake("these are the first six slopes of eight heads.", [2.0**-h for h in range(1, 7)]),
            Mistake(
                "the two added slopes are the second and the fourth of eight heads, which four heads have already:"
                " begin with the first.",
                [2.0**-2, 2.0**-4, 2.0**-6, 2.0**-8, 2.0**-2, 2.0**-4],
            ),
            Mistake(
                "the two added slopes are the first two of eight heads; take every second one.",
                [2.0**-2, 2.0**-4, 2.0**-6, 2.0**-8, 2.0**-1, 2.0**-2],
            ),
            Mistake(
                "the slopes of the larger power come last: the four of four heads first, then two of eight.",
                [2.0**-1, 2.0**-3, 2.0**-2, 2.0**-4, 2.0**-6, 2.0**-8],
            ),
            Mistake(
                "h was counted from 0, so that the first slope is 1; it counts from 1.",
                [1.0, 2.0**-2, 2.0**-4, 2.0**-6, 1.0, 2.0**-2],
            ),
            Mistake("these are the exponents; a slope is 2 to that power.", [-2, -4, -6, -8, -1, -3]),
            Mistake("slopes are positive: the minus stands in front of them, in the bias.",
                    [-(2.0**-2), -(2.0**-4), -(2.0**-6), -(2.0**-8), -(2.0**-1), -(2.0**-3)]),
            Mistake("these are one over the slopes.", [4, 16, 64, 256, 2, 8]),
            Mistake(
                "the two added slopes come in the order of their list: the first of eight heads, then the third.",
                [2.0**-2, 2.0**-4, 2.0**-6, 2.0**-8, 2.0**-3, 2.0**-1],
            ),
            Mistake(
                "these are the right slopes, sorted upwards; the rule's own order has those of four heads first.",
                [2.0**-8, 2.0**-6, 2.0**-4, 2.0**-3, 2.0**-2, 2.0**-1],
            ),
            Mistake(
                "these are the right slopes, rounded too far: write fractions, or five decimals.",
                [0.25, 0.0625, 0.0156, 0.0039, 0.5, 0.125],
            ),
        ],
    ),
    Function(
        "6.4",
        "With one query it is the row that a cache step needs; with as many queries as keys, the whole bias.",
        bias_for,
        cases=[(_draw(3, 5), 3, 8), (_draw(2, 7), 2, 10), (_draw(4, 3), 5, 5)],
        mistakes=[
            Mistake(
                "the first query is taken to stand at the first key; it is the last query that stands at the last key.",
                _bias_from_the_start,
            ),
            Mistake(
                "the signs of the offsets are turned round: column 0 belongs to the offset -c, a key c places before"
                " the query.",
                lambda table, queries, keys: bias_for(table.flip(1), queries, keys),
            ),
            Mistake(
                "far keys to the left are not clipped: their index is negative and reads the table from its other end.",
                _bias_that_wraps,
            ),
            Mistake("beyond the clip the bias is zero here; it should be that of the clip.", _bias_that_ends),
            Mistake(
                "the distance alone is looked up, so left and right look the same.",
                lambda table, queries, keys: table[
                    :, _offsets(queries, keys, keys - queries).abs().clamp(max=table.shape[1] // 2) + table.shape[1] // 2
                ],
            ),
            Mistake(
                "heads come first: the shape should be (H, query_length, key_length).",
                lambda table, queries, keys: bias_for(table, queries, keys).permute(1, 2, 0),
            ),
            Mistake(
                "queries go down and keys across: the last two axes are exchanged.",
                lambda table, queries, keys: bias_for(table, queries, keys).mT,
            ),
            Mistake(
                "this is the bias of all keys as queries; the last query_length rows of it are wanted.",
                lambda table, queries, keys: bias_for(table, keys, keys),
            ),
            Mistake(
                "the last query is taken to stand one place before the last key; it stands at the last key.",
                lambda table, queries, keys: _bias_at(table, _offsets(queries, keys, keys - queries - 1)),
            ),
            Mistake(
                "offset 0 is looked up in column 0; it belongs to column c.",
                lambda table, queries, keys: bias_for(table.roll(table.shape[1] // 2 + 1, dims=1), queries, keys),
            ),
            Mistake(
                "clips one place too early, so that the outer columns of the table are never used.",
                lambda table, queries, keys: _bias_at(table, _offsets(queries, keys, keys - queries), early=1),
            ),
            Mistake(
                "hides the future; that is the business of a mask, and the bias holds for every offset.",
                lambda table, queries, keys: bias_for(table, queries, keys).masked_fill(
                    _offsets(queries, keys, keys - queries) > 0, -math.inf
                ),
            ),
        ],
    ),
    Choice(
        "6.5",
        "What counts is that every key a query may see lies to its left.",
        right="a, c, e",
        options={
            "a": "every visible key lies to the left, so the two differ by m·i, one number for the row.",
            "b": "a query in the middle sees keys on both sides, and those to its right would be rewarded for being far.",
            "c": "the newest token has all keys to its left.",
            "d": "here visible keys lie to the right, where the bias is -m(j - i): the row would have to be -m·j.",
            "e": "padding only takes keys away; those that are left still lie to the left of the query.",
            "f": "the first three tokens of the prefix see keys to their right too, and for those the row is wrong.",
        },
    ),
    Function(
        "6.6",
        "Incremental equals full, for any number of new tokens: only the start and the rows of the mask matter.",
        extend,
        cases=[
            (_draw(5, 8), _draw(5, 6), _draw(4, 8), _draw(4, 8), _draw(4, 6)),
            (_draw(7, 6), _draw(7, 4), _draw(1, 6), _draw(1, 6), _draw(1, 4)),
            (_draw(0, 4), _draw(0, 2), _draw(4, 4), _draw(4, 4), _draw(4, 2)),
        ],
        mistakes=[
            Mistake(
                "the new tokens are turned as if they stood at positions 0, 1, …; they stand after the cache.",
                lambda *a: extend(*a, query_start=0, key_start=0),
            ),
            Mistake(
                "the new keys are turned for their places after the cache, the new queries are not.",
                lambda *a: extend(*a, query_start=0),
            ),
            Mistake(
                "the new queries are turned for their places after the cache, the new keys are not.",
                lambda *a: extend(*a, key_start=0),
            ),
            Mistake(
                "the new tokens start one place too far: with 5 tokens in the cache, the next stands at position 5.",
                lambda *a: extend(*a, query_start=len(a[0]) + 1, key_start=len(a[0]) + 1),
            ),
            Mistake("the new tokens see those that come after them: a mask is missing.", _seeing_everything),
            Mistake(
                "the mask has the rows of the first tokens; the new ones need its last rows, which see the whole cache.",
                _with_the_first_rows,
            ),
            Mistake("the keys of the cache are turned a second time.", _turning_all_keys),
            Mistake(
                "nothing is turned: the new queries and keys come plain.", _scoring
            ),
            Mistake("the turn is that of the other layout; the keys in the cache are in the layout interleaved.", _in_halves),
            Mistake("the scores are not divided by the root of the head width.", _unscaled),
            Mistake("values are turned; they should stay as they are.", _turning_values),
            Mistake("the new keys enter the cache plain; keep them turned, as the old ones are.", _keeping_plain_keys),
            Mistake("the second and third result should be the whole cache, with the old tokens in front.", _new_ones_only),
            Mistake("the cache comes back as it was; the new keys and values should be appended to it.", _cache_as_it_was),
            Mistake("the new tokens stand in front of the old ones in the cache; append them at the end.", _new_ones_first),
            Mistake("three results are wanted, in this order: outputs, keys, values.", lambda *a: extend(*a)[0]),
            Mistake("the order of the results is outputs, keys, values.", lambda *a: extend(*a)[1:] + extend(*a)[:1]),
            Mistake("the new tokens see one another and not the cache.", _forgetting_the_cache),
            Mistake(
                "the mask is upside down: it shows the future and hides the past.",
                lambda *a: extend(*a, mask=_lower_mask(*a, diagonal=-1).logical_not()),
            ),
            Mistake(
                "no new token sees itself: the mask is one place too narrow.",
                lambda *a: extend(*a, mask=_lower_mask(*a, diagonal=-1)),
            ),
            Mistake(
                "every new token sees one token of its future: the mask is one place too wide.",
                lambda *a: extend(*a, mask=_lower_mask(*a, diagonal=1)),
            ),
            Mistake(
                "the new tokens start one place too early: with 5 tokens in the cache, the next stands at position 5.",
                lambda *a: extend(*a, query_start=len(a[0]) - 1, key_start=len(a[0]) - 1),
            ),
            Mistake(
                "the mask was put on the weights, after the softmax, so that the rows no longer sum to 1.",
                _masking_the_weights,
            ),
        ],
    ),
    Choice(
        "6.7",
        "Orthogonal is half of it; the other half is that moves add up.",
        right="d",
        options={
            "a": "a matrix crosses a dot product as its transpose, so this line is true.",
            "b": "that is what orthogonal means.",
            "c": "this puts (b) into (a).",
            "d": "this is the false line.",
            "e": "s - p is minus the offset p - s, so this line is true; the question is whether the score is of this form.",
        },
    ),
    Function(
        "6.8",
        "The map of the keys undoes that of the queries. If A is orthogonal, the two are the same.",
        key_map,
        cases=[
            (torch.eye(3, dtype=torch.float64) + 0.3 * _draw(3, 3), 3),
            (torch.eye(4, dtype=torch.float64) + 0.2 * _draw(4, 4), -2),
            (torch.tensor([[1.1, 0.4], [0.0, 0.9]], dtype=torch.float64), 5),
        ],
        mistakes=[
            Mistake(
                "the inverse is there, the transpose is missing: a matrix crosses a dot product as its transpose.",
                lambda A, s: torch.linalg.matrix_power(A, -s),
            ),
            Mistake(
                "the transpose is there, the inverse is missing: the keys must undo what was done to the queries.",
                lambda A, s: torch.linalg.matrix_power(A, s).T,
            ),
            Mistake(
                "this is the map of the queries. The same map on both sides works for orthogonal A only.",
                lambda A, s: torch.linalg.matrix_power(A, s),
            ),
            Mistake("this does not depend on the position s.", lambda A, s: torch.linalg.inv(A).T),
            Mistake("this is the identity at every position, which undoes nothing.", lambda A, s: torch.eye(len(A))),
            Mistake(
                "the sign of s is lost: at negative positions the queries are mapped by the inverse, and keys undo that.",
                lambda A, s: torch.linalg.matrix_power(A, -abs(s)).T,
            ),
            Mistake("the matrix is multiplied by s; s steps are s products.", lambda A, s: s * torch.linalg.inv(A).T),
            Mistake(
                "the entries of A were raised to the power -s one by one; the power of a matrix is a repeated product.",
                lambda A, s: A.T**-s,
            ),
            Mistake(
                "the entries were raised to the power s one by one; the power of a matrix is a repeated product.",
                lambda A, s: torch.linalg.inv(A).T ** s,
            ),
        ],
    ),
    Open(
        "6.9",
        "Two constant vectors, and the head reads the token five back whatever the words are.",
        _examine_pointer,
        mistakes=[
            Mistake("the largest score is at offset +0, not at -5", torch.ones(2, WIDTH)),
            Mistake(
                "the largest score is at offset +5, five places after the query: the turn went the wrong way", _pointer(-5)
            ),
            Mistake("no score is above zero", np.zeros((2, WIDTH))),
            Mistake(f"should be a query and a key of {WIDTH} numbers each, not shape (2, 8)", torch.ones(2, 8)),
            Mistake("should be two vectors, a query and a key, not 3 things", [[1.0] * WIDTH] * 3),
            Mistake(str(_SPEAKS_OF_HALVES), _pointer(5, "concat")),
            Mistake(str(_SPEAKS_OF_ONE_CLOCK), _pointer(5, columns=slice(0, 2))),
        ],
    ),
]
