"""How a stored value is compressed: zstd with a dictionary that ships with the program.

The codec byte of a stored value says how to read it: 0 plain, 1 zstd, 16 + n zstd with dictionary n. A dictionary is
never changed once released; a new one gets the next number and the old ones stay beside it, so that every store ever
written stays readable. No text of a user is in any of them: they are trained on the project's own fixtures.
"""

from __future__ import annotations

import os
import sys
from _thread import _local

from objstore.errors import StorageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

PLAIN = 0
ZSTD = 1
_WITH_DICTIONARY = 16
#: The dictionary that new values are written with.
CURRENT_DICTIONARY = 1
CURRENT_CODEC = _WITH_DICTIONARY + CURRENT_DICTIONARY

_LEVEL = 1
#: What the parameters are chosen for: most values are smaller.
_USUAL_SIZE = 4096
#: Frames are stored without zstd's four magic bytes: the codec byte says what they are.
_MAGICLESS = 1
_FOLDER = os.path.join(os.path.dirname(__file__), "dictionaries")

_zstd: Any = None
_dictionaries: dict[int, Any] = {}
_prepared_dictionaries: dict[int, tuple[Any, Any]] = {}


class _Contexts(_local):
    """What zstd works with, by codec. Each thread has its own: two that share one spoil each other's work."""

    def __init__(self) -> None:
        self.compressors: dict[int, Any] = {}
        self.unpackers: dict[int, Callable[[bytes], bytes]] = {}


_contexts = _Contexts()


def _library() -> Any:
    """The zstd bindings. The package's own ``__init__`` imports half the standard library, which would double the
    start-up time of a command that reads one object, so its compiled core is loaded directly where that works."""
    global _zstd
    if _zstd is None:
        _zstd = sys.modules.get("zstandard") or _compiled_core()
    return _zstd


def _compiled_core() -> Any:
    from importlib.machinery import EXTENSION_SUFFIXES, ExtensionFileLoader, ModuleSpec, PathFinder

    package = PathFinder.find_spec("zstandard")
    if package is not None and package.submodule_search_locations:
        for suffix in EXTENSION_SUFFIXES:
            path = os.path.join(package.submodule_search_locations[0], "backend_c" + suffix)
            if os.path.exists(path):
                name = "zstandard.backend_c"
                loader = ExtensionFileLoader(name, path)
                try:
                    module = loader.create_module(ModuleSpec(name, loader, origin=path))
                    loader.exec_module(module)
                except ImportError:
                    break
                return module
    import zstandard

    return zstandard


def _dictionary(number: int) -> Any:
    found = _dictionaries.get(number)
    if found is None:
        try:
            with open(os.path.join(_FOLDER, f"{number}.zdict"), "rb") as file:
                raw = file.read()
        except OSError:
            raise StorageError(
                f"dictionary {number}: not part of this program",
                hint="the store was written by a newer objstore: upgrade",
            ) from None
        found = _dictionaries[number] = _library().ZstdCompressionDict(raw)
    return found


def _prepared(number: int) -> tuple[Any, Any]:
    """The parameters and the dictionary that values are written with. It is kept when it is complete, since other
    threads see it from then on; reading does not wait for that, so it has one of its own."""
    found = _prepared_dictionaries.get(number)
    if found is None:
        dictionary = _library().ZstdCompressionDict(_dictionary(number).as_bytes())
        parameters = _parameters(source_size=_USUAL_SIZE, dict_size=len(dictionary))
        dictionary.precompute_compress(compression_params=parameters)
        found = _prepared_dictionaries[number] = (parameters, dictionary)
    return found


def _compressor(codec: int) -> Any:
    found = _contexts.compressors.get(codec)
    if found is None:
        zstd = _library()
        if codec == ZSTD:
            found = zstd.ZstdCompressor(compression_params=_parameters())
        else:
            parameters, dictionary = _prepared(codec - _WITH_DICTIONARY)
            found = zstd.ZstdCompressor(compression_params=parameters, dict_data=dictionary)
        _contexts.compressors[codec] = found
    return found


def _parameters(**sizes: int) -> Any:
    return _library().ZstdCompressionParameters.from_level(
        _LEVEL, format=_MAGICLESS, write_dict_id=0, write_checksum=0, **sizes
    )


def _unpacker(codec: int) -> Callable[[bytes], bytes]:
    found = _contexts.unpackers.get(codec)
    if found is None:
        zstd = _library()
        if codec == ZSTD:
            found = zstd.ZstdDecompressor(format=_MAGICLESS).decompress
        elif codec > _WITH_DICTIONARY:
            dictionary = _dictionary(codec - _WITH_DICTIONARY)
            found = zstd.ZstdDecompressor(dict_data=dictionary, format=_MAGICLESS).decompress
        else:
            raise StorageError(
                f"codec {codec}: unknown", hint="the store was written by a newer objstore: upgrade"
            )
        _contexts.unpackers[codec] = found
    return found


def compress(data: bytes, codec: int) -> tuple[int, bytes]:
    """``(codec, payload)`` of one value; plain where compression does not make it smaller."""
    if codec == PLAIN:
        return PLAIN, data
    packed: bytes = _compressor(codec).compress(data)
    return (codec, packed) if len(packed) < len(data) else (PLAIN, data)


def compress_many(values: Sequence[bytes], codec: int) -> tuple[list[int], list[bytes]]:
    """``compress`` of each, as codecs and payloads, in one call that leaves the interpreter lock free meanwhile."""
    codecs = [codec] * len(values)
    if codec == PLAIN or not values:
        return codecs, list(values)
    frames = _compressor(codec).multi_compress_to_buffer(list(values), threads=1)
    packed = [frame.tobytes() for frame in frames]
    for at, value in enumerate(values):
        if len(packed[at]) >= len(value):
            codecs[at], packed[at] = PLAIN, value
    return codecs, packed


def decompress(codec: int, payload: bytes) -> bytes:
    """The value that ``compress`` packed; raises ``StorageError`` for bytes that do not unpack."""
    if codec == PLAIN:
        return payload
    unpack = _contexts.unpackers.get(codec) or _unpacker(codec)
    try:
        return unpack(payload)
    except _library().ZstdError as error:
        raise StorageError(f"stored bytes do not unpack: {error}") from None


def unpack_all(codec: int, payloads: list[bytes]) -> list[bytes]:
    """``decompress`` of many payloads with one codec."""
    if codec == PLAIN:
        return payloads
    try:
        return list(map(_contexts.unpackers.get(codec) or _unpacker(codec), payloads))
    except _library().ZstdError as error:
        raise StorageError(f"stored bytes do not unpack: {error}") from None
