"""What is known of providers, and whom it rules out."""

from scheduler.claims.placement.facts import TRAIT, Facts, Need

NEEDS = [Need(TRAIT, ["HW_A"], "it has no trait HW_A")]


def test_one_trait_may_be_known_of_a_provider_and_no_other():
    facts = Facts()
    facts.learn_one(TRAIT, "HW_A", 5.0, {"n1": 0.0, "n2": 1.0})
    places = [facts.place_of(each) for each in ("n1", "n2", "n3")]
    assert facts.refused(NEEDS, 4.0)[places].tolist() == [True, False, False]
    assert not facts.refused(NEEDS, 5.0).any()
    # Later all of its traits are known.
    facts.learn(TRAIT, 6.0, {"n1": {"HW_A": 1}})
    assert not facts.refused(NEEDS, 4.0).any()
