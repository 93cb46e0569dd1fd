"""A stand-in for curl on machines without it, with the options that README and docs use: `-s`, `-X`, `-H`, `-d`."""

import argparse
import sys
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

COULD_NOT_CONNECT = 7


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="curl")
    parser.add_argument("-s", action="store_true")
    parser.add_argument("-X", default="GET")
    parser.add_argument("-H", action="append", default=[])
    parser.add_argument("-d")
    parser.add_argument("url")
    given = parser.parse_args(arguments)
    headers = dict(header.split(": ", 1) for header in given.H)
    request = Request(given.url, given.d.encode() if given.d else None, headers, method=given.X)
    try:
        answer = urlopen(request, timeout=60)
    except HTTPError as error:
        answer = error
    except URLError:
        # The exit code of curl; with `-s` it prints nothing.
        return COULD_NOT_CONNECT
    sys.stdout.buffer.write(answer.read())
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
