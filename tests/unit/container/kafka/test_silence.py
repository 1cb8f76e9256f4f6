"""How long Kafka was silent in a transaction."""

from __future__ import annotations

from homeport.container.kafka.transactional_producer import Silence


def test_waits_of_a_second_and_more_in_which_nothing_arrives_add_up() -> None:
    """A wait that lasts counts too; shorter ones are how long requests take."""
    now_s = [100.0]
    silence = Silence(lambda: now_s[0])
    assert silence.total_s == 0.0
    silence.waits()
    now_s[0] += 0.9
    assert silence.total_s == 0.0
    silence.waits()
    now_s[0] += 1.0
    assert silence.total_s == 1.0
    silence.ends()
    now_s[0] += 50.0  # work of its own
    assert silence.total_s == 1.0
    silence.waits()
    now_s[0] += 12.0
    assert silence.total_s == 13.0
    silence.waits()
    assert silence.total_s == 13.0
    now_s[0] += 0.5
    silence.ends()
    silence.ends()
    assert silence.total_s == 13.0
