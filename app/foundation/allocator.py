"""What a process tells the C library about its memory."""

import ctypes

_M_MMAP_THRESHOLD, _M_ARENA_MAX = -3, -8
_LARGE_BYTES = 128 * 1024


def save_memory() -> None:
    """All threads share an area. Otherwise each takes memory from an area of its own, up to eight for each processor,
    and each area keeps what was freed in it. Threads that run Python hardly ever allocate at the same time, so they do
    not wait here. And large pieces go back to the system when they are freed. Otherwise the library keeps larger and
    larger ones, up to 32 MB."""
    library = ctypes.CDLL(None)
    # Other libraries than glibc work in another way.
    if hasattr(library, "mallopt"):
        library.mallopt(_M_ARENA_MAX, 1)
        library.mallopt(_M_MMAP_THRESHOLD, _LARGE_BYTES)
