"""The two lists in which institutions name their people, from which two kinds are made."""

from collections.abc import Mapping

from app.roster.kinds.kind import (
    AliasRule,
    ColumnType,
    CsvFormat,
    IdentifierRule,
    ListColumn,
    ListDeclaration,
    ListSource,
    XmlFormat,
)

HASHED = ("identifier", "name_lower", "phone", "locale")


def people_lists(
    name: str,
    record: str,
    more_columns: tuple[ListColumn, ...] = (),
    more_headers: Mapping[str, tuple[str, ...]] | None = None,
    more_elements: Mapping[str, str] | None = None,
) -> ListSource:
    return ListSource(
        name=name,
        lists=(
            ListDeclaration("enrolment", alias_type="ENROLMENT"),
            ListDeclaration("clearance", alias_type="CLEARANCE"),
        ),
        identifier=IdentifierRule.TURKISH_ID,
        columns=(
            ListColumn("name", "name", required=True),
            ListColumn("phone", "phone", ColumnType.PHONE),
            ListColumn("locale", "locale", ColumnType.LOCALE),
            *more_columns,
        ),
        alias_parts=("alias", "type"),
        alias_rule=AliasRule.INSTITUTION,
        csv=CsvFormat(
            headers={
                "identifier": ("identifier", "tc_kimlik_no"),
                "name": ("name", "ad_soyad"),
                "phone": ("phone", "telefon"),
                "locale": ("locale", "dil"),
                **(more_headers or {}),
                "alias": ("institution", "kurum_no"),
            }
        ),
        xml=XmlFormat(
            record=record,
            elements={
                "identifier": "identifier",
                "name": "name",
                "phone": "phone",
                "locale": "locale",
                **(more_elements or {}),
            },
            aliases="institutions/institution",
            alias={"alias": "."},
        ),
    )
