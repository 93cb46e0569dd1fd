"""Elders whom their municipalities serve."""

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
    name="elders",
    document_type=4,
    source=Source(
        name="elders",
        lists=(
            ListDeclaration("enrolment", alias_type="ENROLMENT"),
            ListDeclaration("clearance", alias_type="CLEARANCE"),
        ),
        identifier=IdentifierRule.TURKISH_ID,
        columns=(
            Column("name", "name", required=True),
            Column("phone", "phone", ColumnType.PHONE),
            Column("locale", "locale", ColumnType.LOCALE),
            Column("home", "home", ColumnType.PLACE),
        ),
        alias_parts=("alias", "type"),
        alias_rule=AliasRule.INSTITUTION,
        csv=CsvFormat(
            headers={
                "identifier": ("identifier", "tc_kimlik_no"),
                "name": ("name", "ad_soyad"),
                "phone": ("phone", "telefon"),
                "locale": ("locale", "dil"),
                "home": ("lat", "lon", "enlem", "boylam"),
                "alias": ("institution", "kurum_no"),
            }
        ),
        xml=XmlFormat(
            record="elder",
            elements={
                "identifier": "identifier",
                "name": "name",
                "phone": "phone",
                "locale": "locale",
                "home": "lat lon",
            },
            aliases="institutions/institution",
            alias={"alias": "."},
        ),
    ),
    hashed=("identifier", "name_lower", "phone", "locale", "home"),
    role=Role.ELDER,
)
