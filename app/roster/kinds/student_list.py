"""Students who may volunteer, as their universities list them."""

from app.roster.kinds.kind import (
    AliasRule,
    ColumnType,
    CsvFormat,
    IdentifierRule,
    Kind,
    ListColumn,
    ListDeclaration,
    ListSource,
    XmlFormat,
)
from app.users.models import Role

KIND = Kind(
    name="students",
    document_type=3,
    source=ListSource(
        name="students",
        lists=(
            ListDeclaration("enrolment", alias_type="ENROLMENT"),
            ListDeclaration("clearance", alias_type="CLEARANCE"),
        ),
        identifier=IdentifierRule.TURKISH_ID,
        columns=(
            ListColumn("name", "name", required=True),
            ListColumn("phone", "phone", ColumnType.PHONE),
            ListColumn("locale", "locale", ColumnType.LOCALE),
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
