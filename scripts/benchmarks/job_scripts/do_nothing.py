"""Does nothing, for the benchmark of the rows."""


def run(params, _context):
    return params["value"]
