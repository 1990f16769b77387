"""The k largest of each fp32 row by radix selection, most significant byte first.

A float becomes an unsigned key of the same order. Each of four rounds counts the next byte of the
keys that agree with the prefix found so far, finds the byte where the count from above passes k,
and emits what lies above it; when a byte's keys all belong to the top k the search ends early.
The order of the indices in a row is not specified.
"""

import numpy as np

import tilelang
import tilelang.language as T

RADIX = 256


def order_key(x):
    """Maps floats to uint32 so that the larger float has the larger key."""
    bits = T.reinterpret(x, T.uint32)
    return T.if_then_else(
        bits >= T.uint32(0x80000000),
        bits ^ T.uint32(0xFFFFFFFF),
        bits | T.uint32(0x80000000),
    )


@tilelang.jit
def tl_topk_impl(input, index, starts, ends, in_dtype=T.float32, out_dtype=T.int32):
    batch, seq_len, topk = T.const("batch, seq_len, topk")
    block = 512
    input: T.Tensor[(batch, seq_len), in_dtype]
    index: T.Tensor[(batch, topk), out_dtype]
    starts: T.Tensor[batch, out_dtype]
    ends: T.Tensor[batch, out_dtype]

    with T.Kernel(batch, threads=block) as bx:
        histogram = T.alloc_shared((RADIX,), T.int32)
        at_least = T.alloc_shared((RADIX,), T.int32)
        found = T.alloc_shared((1,), T.int32)
        ties = T.alloc_shared((1,), T.int32)
        threshold = T.alloc_shared((1,), T.int32)
        taken = T.alloc_shared((1,), T.int32)
        prefix = T.alloc_var(T.uint32, 0)
        remaining = T.alloc_var(T.int32, topk)
        start = starts[bx]
        length = ends[bx] - start

        T.clear(found)
        T.clear(ties)
        for i in T.Parallel(topk):
            index[bx, i] = -1

        for r in T.unroll(4):
            shift = T.cast(24 - 8 * r, T.uint32)
            if remaining > 0:
                T.clear(histogram)
                T.clear(threshold)
                T.clear(taken)
                for tile in T.serial(T.ceildiv(length, block)):
                    for t in T.Parallel(block):
                        if tile * block + t < length:
                            key = order_key(input[bx, start + tile * block + t])
                            # A shift by all 32 bits is not defined: two steps.
                            if (key >> (shift + 7)) >> 1 == prefix:
                                T.atomic_add(histogram[T.cast((key >> shift) & 0xFF, T.int32)], 1)
                T.cumsum(histogram, at_least, dim=0, reverse=True)
                for b in T.Parallel(RADIX):
                    above = at_least[b] - histogram[b]
                    if above < remaining and at_least[b] >= remaining:
                        threshold[0] = b
                        taken[0] = above
                # Fewer candidates than wanted: all of them are taken, byte 0 included.
                all_taken = at_least[0] <= remaining
                exact = all_taken or at_least[threshold[0]] == remaining or r == 3
                for tile in T.serial(T.ceildiv(length, block)):
                    for t in T.Parallel(block):
                        if tile * block + t < length:
                            position = tile * block + t
                            key = order_key(input[bx, start + position])
                            byte = T.cast((key >> shift) & 0xFF, T.int32)
                            if (key >> (shift + 7)) >> 1 == prefix:
                                if all_taken or byte > threshold[0]:
                                    slot = T.atomic_add(found[0], 1, return_prev=True)
                                    index[bx, slot] = start + position
                                elif exact and byte == threshold[0]:
                                    # Equal keys fill the row from its end, as many as are wanted.
                                    tie = T.atomic_add(ties[0], 1, return_prev=True)
                                    if tie < remaining - taken[0]:
                                        index[bx, topk - 1 - tie] = start + position
                remaining = T.if_then_else(exact, 0, remaining - taken[0])
                prefix = (prefix << 8) | T.cast(threshold[0], T.uint32)


@tilelang.jit
def tl_topk_threads(input, index, starts, ends, in_dtype=T.float32, out_dtype=T.int32):
    """The same written for threads: one thread per bin, a scan by doubling, votes to stop early."""
    batch, seq_len, topk = T.const("batch, seq_len, topk")
    block = 512
    input: T.Tensor[(batch, seq_len), in_dtype]
    index: T.Tensor[(batch, topk), out_dtype]
    starts: T.Tensor[batch, out_dtype]
    ends: T.Tensor[batch, out_dtype]

    with T.Kernel(batch, threads=block) as bx:
        tx = T.get_thread_binding()
        histogram = T.alloc_shared((RADIX + 1,), T.int32)
        found = T.alloc_shared((1,), T.int32)
        ties = T.alloc_shared((1,), T.int32)
        threshold = T.alloc_shared((1,), T.int32)
        prefix = T.alloc_var(T.uint32, 0)
        remaining = T.alloc_var(T.int32, topk)
        partial = T.alloc_var(T.int32, 0)
        finished = T.alloc_var(T.bool, False)
        start = starts[bx]
        length = ends[bx] - start

        if tx == 0:
            found[0] = 0
            ties[0] = 0
        for i in T.serial(T.ceildiv(topk, block)):
            if i * block + tx < topk:
                index[bx, i * block + tx] = -1
        T.sync_threads()

        for r in T.serial(4):
            if finished:
                break
            shift = T.cast(24 - 8 * r, T.uint32)
            if tx <= RADIX:
                histogram[tx] = 0
            if tx == 0:
                threshold[0] = 0
            T.sync_threads()
            for tile in T.serial(T.ceildiv(length, block)):
                position = tile * block + tx
                if position < length:
                    key = order_key(input[bx, start + position])
                    if (key >> (shift + 7)) >> 1 == prefix:
                        T.atomic_add(histogram[T.cast((key >> shift) & 0xFF, T.int32)], 1)
            T.sync_threads()
            for step in T.serial(8):
                partial = 0
                if tx + (1 << step) < RADIX:
                    partial = histogram[tx + (1 << step)]
                T.sync_threads()
                if tx < RADIX:
                    histogram[tx] = histogram[tx] + partial
                T.sync_threads()
            if tx < RADIX:
                if histogram[tx] >= remaining and histogram[tx + 1] < remaining:
                    threshold[0] = tx
            T.sync_threads()

            bound = threshold[0]
            all_taken = histogram[0] <= remaining
            exact = all_taken or histogram[bound] == remaining or r == 3
            above = histogram[bound + 1]
            for tile in T.serial(T.ceildiv(length, block)):
                position = tile * block + tx
                if position < length:
                    key = order_key(input[bx, start + position])
                    byte = T.cast((key >> shift) & 0xFF, T.int32)
                    if (key >> (shift + 7)) >> 1 == prefix:
                        if all_taken or byte > bound:
                            slot = T.atomic_add(found[0], 1, return_prev=True)
                            index[bx, slot] = start + position
                        elif exact and byte == bound:
                            tie = T.atomic_add(ties[0], 1, return_prev=True)
                            if tie < remaining - above:
                                index[bx, topk - 1 - tie] = start + position
            finished = exact
            remaining = remaining - above
            prefix = (prefix << 8) | T.cast(bound, T.uint32)
            T.sync_threads()


def inputs(rng, batch, seq_len, topk, **_):
    values = rng.standard_normal((batch, seq_len)).astype(np.float32)
    values[0, : seq_len // 2] = np.float32(1) + rng.permutation(seq_len // 2) * np.float32(2**-23)
    starts = rng.integers(0, 5, batch).astype(np.int32)
    ends = (seq_len - rng.integers(0, 5, batch)).astype(np.int32)
    ends[-1] = starts[-1] + topk // 2  # fewer candidates than wanted
    return values, np.zeros((batch, topk), np.int32), starts, ends


def reference(values, _index, starts, ends, topk, **_):
    index = np.full((len(values), topk), -1, np.int32)
    for row, (start, end) in enumerate(zip(starts, ends, strict=True)):
        best = np.argsort(-values[row, start:end], kind="stable")[:topk] + start
        index[row, : len(best)] = best
    return (index,)


def sort_rows(outputs):
    return tuple(np.sort(output, axis=1) for output in outputs)
