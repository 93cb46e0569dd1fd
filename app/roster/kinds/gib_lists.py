"""The two lists of taxpayers who use electronic documents, from which two kinds are made."""

from app.roster.kinds.kind import ColumnType, IdentifierRule, ListColumn, ListDeclaration, ListSource, XmlFormat

GIB_LISTS = ListSource(
    name="gib",
    lists=(ListDeclaration("pk", alias_type="PK"), ListDeclaration("gb", alias_type="GB")),
    identifier=IdentifierRule.TAX_OR_TURKISH_ID,
    columns=(
        ListColumn("title", "title", longest=1000),
        ListColumn("account_type", "accountType"),
        ListColumn("type", "type"),
        ListColumn("first_creation_time", "firstCreationTime", ColumnType.DATE_TIME, required=True),
    ),
    alias_parts=("alias", "type", "creationTime"),
    alias_times=("creationTime",),
    xml=XmlFormat(
        record="User",
        elements={
            "identifier": "Identifier",
            "title": "Title",
            "account_type": "AccountType",
            "type": "Type",
            "first_creation_time": "FirstCreationTime",
        },
        aliases="Documents/Document/Alias",
        document="type",
        alias={"alias": "Name", "creationTime": "CreationTime"},
        alias_ended="DeletionTime",
    ),
)
HASHED = ("identifier", "title_lower", "account_type", "type", "first_creation_time")
