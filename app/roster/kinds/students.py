"""Students who may volunteer, as their universities list them."""

from app.roster.kind import (
    AliasRule,
    Column,
    ColumnType,
    CsvFormat,
    IdentifierRule,
    Kind,
    ListDeclaration,
    Source,
    XmlFormat,
)
from app.users.models import Role

KIND = Kind(
    name="students",
    document_type=3,
    source=Source(
        name="students",
        lists=(
            ListDeclaration("enrolment", alias_type="ENROLMENT"),
            ListDeclaration("clearance", alias_type="CLEARANCE"),
        ),
        identifier=IdentifierRule.TURKISH_ID,
        columns=(
            Column("name", "name", required=True),
            Column("phone", "phone", ColumnType.PHONE),
            Column("locale", "locale", ColumnType.LOCALE),
        ),
        alias_parts=("alias", "type"),
        alias_rule=AliasRule.INSTITUTION,
        csv=CsvFormat(
            headers={
                "identifier": ("identifier", "tc_kimlik_no"),
                "name": ("name", "ad_soyad"),
                "phone": ("phone", "telefon"),
                "locale": ("locale", "dil"),
                "alias": ("institution", "kurum_no"),
            }
        ),
        xml=XmlFormat(
            record="student",
            elements={"identifier": "identifier", "name": "name", "phone": "phone", "locale": "locale"},
            aliases="institutions/institution",
            alias={"alias": "."},
        ),
    ),
    hashed=("identifier", "name_lower", "phone", "locale"),
    role=Role.STUDENT,
)
