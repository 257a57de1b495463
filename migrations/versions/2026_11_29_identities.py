"""Users have an identity at a provider of OpenID Connect, and sessions without a token."""

import sqlalchemy as sa
from alembic import op

revision = "0045"
down_revision = "0044"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("users", sa.Column("identity", sa.String(length=512), nullable=True))
    op.create_unique_constraint(op.f("uq_users_identity"), "users", ["identity"])
    op.alter_column("sessions", "token_id", nullable=True)
    op.add_column("sessions", sa.Column("user_id", sa.BigInteger(), nullable=True))
    op.create_index(op.f("ix_sessions_user_id"), "sessions", ["user_id"])
    op.create_foreign_key(op.f("fk_sessions_user_id"), "sessions", "users", ["user_id"], ["id"], ondelete="CASCADE")
    op.create_check_constraint(op.f("ck_sessions_one_of_both"), "sessions", "num_nonnulls(token_id, user_id) = 1")


def downgrade() -> None:
    op.execute("delete from sessions where token_id is null")
    op.drop_constraint(op.f("ck_sessions_one_of_both"), "sessions", type_="check")
    op.drop_column("sessions", "user_id")
    op.alter_column("sessions", "token_id", nullable=False)
    op.drop_column("users", "identity")
