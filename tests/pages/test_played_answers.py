"""The played service has no fields that the API does not have."""

from app.api.schemas import MyOfferJson, TaskJson
from tests.support.played_service import offer, task


def test_played_answers_have_the_fields_of_the_api() -> None:
    for played, model in ((task(), TaskJson), (offer(), MyOfferJson)):
        assert set(played) <= set(model.model_json_schema(mode="serialization")["properties"])
