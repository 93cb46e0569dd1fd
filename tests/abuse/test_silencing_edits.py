"""Edits of an operator that would make the service fall silent."""

import pytest

from tests.support.matching import Neighbourhood


@pytest.mark.parametrize(
    "edit",
    [
        "UPDATE message_templates SET body = '{{ telefon }}'",
        "UPDATE message_templates SET body = '{% if %}'",
        r"UPDATE message_templates SET body = '{{ ''\x00'' }}'",
        "UPDATE message_templates SET retired_at = clock_timestamp()",
    ],
)
def test_words_that_cannot_be_filled_give_way_to_those_that_were_shipped(town: Neighbourhood, edit: str) -> None:
    """A wrong name in a template would else mean that nobody hears of a request for which nobody was found."""
    town.run(edit)
    coordinator, elder, student = town.coordinator(), town.elder(), town.student(10)
    task_id = town.press(elder)
    assert town.bodies(student, "OFFER") == [
        "Yakınında yeni bir talep var! Kabul etmek için 10 dakikan var.",
    ]
    town.matching.reject(student, task_id)
    assert town.bodies(elder, "NOBODY_FOUND") == ["Maalesef şu an uygun öğrenci bulunamadı."]
    assert town.bodies(coordinator, "NOBODY_FOUND_FOR") == [
        "Öğrenci bulunamadı. Arayan: Ayşe Yılmaz, telefon: +905550000001.",
    ]
