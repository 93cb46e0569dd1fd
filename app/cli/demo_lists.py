"""Two small lists of elders, as a municipality publishes them, for the demo neighbourhood."""

import io
import zipfile

from app.roster import service as roster
from app.settings.settings import Settings

SOURCE = "elders"
LISTS = {
    "enrolment": """tc_kimlik_no;ad_soyad;telefon;enlem;boylam;kurum_no
10000010114;Ayşe Yılmaz;0555 010 00 02;40.9870;29.0280;1
10000010282;Hüseyin Öztürk;0555 010 00 03;40.9870;29.0280;1
10000010350;Işıl Çınar;0555 010 00 04;40.9882;29.0263;1
""",
    "clearance": """tc_kimlik_no;ad_soyad;kurum_no
10000010350;Işıl Çınar;34
""",
}


def leave_demo_lists(settings: Settings) -> None:
    """For the next run. Lists that are there already stay."""
    for name, lines in LISTS.items():
        source, declaration = roster.list_named(SOURCE, name)
        if not roster.has_pushed_list(settings, source, declaration):
            roster.keep_pushed_list(settings, source, declaration, _packed(lines), None)


def _packed(lines: str) -> io.BytesIO:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("list.csv", lines)
    packed.seek(0)
    return packed
