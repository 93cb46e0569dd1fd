"""Elders whom their municipalities serve."""

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
    name="elders",
    document_type=4,
    source=ListSource(
        name="elders",
        lists=(
            ListDeclaration("enrolment", alias_type="ENROLMENT"),
            ListDeclaration("clearance", alias_type="CLEARANCE"),
        ),
        identifier=IdentifierRule.TURKISH_ID,
        columns=(
            ListColumn("name", "name", required=True),
            ListColumn("phone", "phone", ColumnType.PHONE),
            ListColumn("locale", "locale", ColumnType.LOCALE),
            ListColumn("home", "home", ColumnType.PLACE),
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
