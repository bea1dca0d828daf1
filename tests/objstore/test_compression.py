"""Values packed and unpacked, by several threads at once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from random import Random

from objstore.compression import CURRENT_CODEC, compress, compress_many, decompress, unpack_all


def test_threads_do_not_spoil_each_others_work() -> None:
    def work(seed: int) -> int:
        random = Random(seed)
        wrong = 0
        for _ in range(150):
            values = [
                b'{"text":"%d","type":"text"}' % random.getrandbits(64) * random.randrange(1, 400)
                for _ in range(8)
            ]
            codecs, packed = compress_many(values, CURRENT_CODEC)
            wrong += [decompress(*one) for one in zip(codecs, packed, strict=True)] != values
            codec, payload = compress(values[0], CURRENT_CODEC)
            wrong += unpack_all(codec, [payload] * 3) != values[:1] * 3
        return wrong

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(work, range(16))) == 0
