from collections.abc import Sequence


def print_table(titles: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    cells = [[str(cell) for cell in row] for row in [titles, *rows]]
    widths = [max(len(row[column]) for row in cells) for column in range(len(titles))]
    for row in cells:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
