import hashlib

import pytest
from sqlalchemy import select

from warpfold.app.auth.access_tokens import (
    Principal,
    Role,
    RoleMismatch,
    any_admin,
    create_token,
    hash_of,
    list_tokens,
    mint,
    principal_of,
    revoke_token,
)
from warpfold.app.db import BlockingDatabase
from warpfold.app.tables.users import tokens


def test_a_token_is_random_prefixed_and_long_enough_not_to_be_guessed() -> None:
    made = {mint().token for _ in range(100)}
    assert len(made) == 100
    assert all(token.startswith("wf_") and len(token) == 46 for token in made)


def test_only_the_hash_and_a_hint_would_be_stored() -> None:
    minted = mint()
    assert minted.hash == hash_of(minted.token) == hashlib.sha256(minted.token.encode()).digest()
    assert minted.token.startswith(minted.hint)
    assert len(minted.hint) == 9


def owner_of(database: BlockingDatabase, token: str) -> Principal:
    seen = database.run(principal_of, hash_of(token))
    assert seen is not None
    return seen.principal


def test_a_token_names_its_user(database: BlockingDatabase) -> None:
    token = database.run(create_token, "ann", Role.ADMIN)
    principal = owner_of(database, token)
    assert (principal.name, principal.role, principal.is_admin) == ("ann", Role.ADMIN, True)


def test_an_unknown_token_names_nobody(database: BlockingDatabase) -> None:
    assert database.run(principal_of, hash_of("wf_unknown")) is None


def test_a_user_may_have_several_tokens_and_is_created_once(database: BlockingDatabase) -> None:
    users = {owner_of(database, database.run(create_token, "ann")).id for _ in range(3)}
    assert len(users) == 1


def test_a_new_user_is_no_admin_unless_told(database: BlockingDatabase) -> None:
    assert not owner_of(database, database.run(create_token, "ann")).is_admin


def test_a_role_is_not_changed_by_a_token(database: BlockingDatabase) -> None:
    database.run(create_token, "ann", Role.USER)
    database.run(create_token, "ann")
    with pytest.raises(RoleMismatch, match="user"):
        database.run(create_token, "ann", Role.ADMIN)
    assert len(database.run(list_tokens)) == 2


def test_a_revoked_token_names_nobody_and_stays_in_the_list(database: BlockingDatabase) -> None:
    token = database.run(create_token, "ann", None, "laptop")
    kept = database.run(create_token, "ann")
    [info, _] = database.run(list_tokens)
    assert database.run(revoke_token, info.id)
    assert not database.run(revoke_token, info.id)
    assert not database.run(revoke_token, 10**6)
    assert database.run(principal_of, hash_of(token)) is None
    assert database.run(principal_of, hash_of(kept)) is not None
    [gone, _] = database.run(list_tokens)
    assert (gone.label, gone.revoked_at is not None) == ("laptop", True)


def test_the_secret_itself_is_nowhere_in_the_table(database: BlockingDatabase) -> None:
    token = database.run(create_token, "ann")
    row = database.run(lambda connection: connection.execute(select(tokens)).one())
    assert token not in repr(row)
    assert token[9:] not in repr(row)


def test_whether_there_is_an_admin_counts_tokens_in_force(database: BlockingDatabase) -> None:
    database.run(create_token, "ann")
    assert not database.run(any_admin)
    database.run(create_token, "root", Role.ADMIN)
    assert database.run(any_admin)
    database.run(revoke_token, database.run(list_tokens)[-1].id)
    assert not database.run(any_admin)
