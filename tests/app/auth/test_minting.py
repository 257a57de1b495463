import hashlib

from warpfold.app.auth.access_tokens import hash_of, mint


def test_a_token_is_random_prefixed_and_long_enough_not_to_be_guessed() -> None:
    made = {mint().token for _ in range(100)}
    assert len(made) == 100
    assert all(token.startswith("wf_") and len(token) == 46 for token in made)


def test_only_the_hash_and_a_hint_would_be_stored() -> None:
    minted = mint()
    assert minted.hash == hash_of(minted.token) == hashlib.sha256(minted.token.encode()).digest()
    assert minted.token.startswith(minted.hint)
    assert len(minted.hint) == 9
