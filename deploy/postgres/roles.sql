-- Makes the database roles of Warpfold. Run it by psql as a superuser, in Warpfold's database; it may be run again.
--
--   psql --set secrets=deploy/secrets --file deploy/postgres/roles.sql 'postgresql://…/warpfold'
--
-- `secrets` is the folder of deploy/secrets.sh: each role's password is in its address there. The official image of Postgres runs
-- this file by itself when it makes a new cluster; without `secrets` it then looks into /run/secrets.
--
--   warpfold_migrate     owns the tables; the only one that changes the schema (`warpfold migrate`, backup, restore)
--   warpfold_api         the api, and `warpfold token`
--   warpfold_dispatcher  the dispatcher
--   warpfold_worker      the workers
--
-- What the last three may do with each table is in migrations/rights.py; `warpfold migrate` grants it.
\set ON_ERROR_STOP on
\if :{?secrets}
\else
\set secrets /run/secrets
\endif

-- The password in an address stands between the second colon and the @.
\set migrate `sed -E 's#^[a-z+]+://[^:]+:([^@]+)@.*#\1#' :'secrets'/migrate_database_url`
\set api `sed -E 's#^[a-z+]+://[^:]+:([^@]+)@.*#\1#' :'secrets'/api_database_url`
\set dispatcher `sed -E 's#^[a-z+]+://[^:]+:([^@]+)@.*#\1#' :'secrets'/dispatcher_database_url`
\set worker `sed -E 's#^[a-z+]+://[^:]+:([^@]+)@.*#\1#' :'secrets'/worker_database_url`
select :'migrate' = '' or :'api' = '' or :'dispatcher' = '' or :'worker' = '' as unknown \gset
\if :unknown
\warn 'roles.sql: the folder of secrets lacks an address of a role; run deploy/secrets.sh'
select 1 / 0 as "a password is missing";
\endif

begin;
select format('create role %I', name)
from unnest(array['warpfold_migrate', 'warpfold_api', 'warpfold_dispatcher', 'warpfold_worker']) as name
where not exists (select from pg_roles where rolname = name) \gexec

alter role warpfold_migrate login nosuperuser nocreatedb nocreaterole noreplication nobypassrls password :'migrate';
alter role warpfold_api login nosuperuser nocreatedb nocreaterole noreplication nobypassrls password :'api';
alter role warpfold_dispatcher login nosuperuser nocreatedb nocreaterole noreplication nobypassrls password :'dispatcher';
alter role warpfold_worker login nosuperuser nocreatedb nocreaterole noreplication nobypassrls password :'worker';

-- No other role may connect, and only the owner may create anything, temporary tables included.
revoke all on database :"DBNAME" from public;
grant connect on database :"DBNAME" to warpfold_migrate, warpfold_api, warpfold_dispatcher, warpfold_worker;
alter database :"DBNAME" owner to warpfold_migrate;
alter schema public owner to warpfold_migrate;
revoke all on schema public from public;
grant usage on schema public to warpfold_api, warpfold_dispatcher, warpfold_worker;

-- Tables of an older installation belong to another role. Their sequences change owners with them.
select format('alter table %I.%I owner to warpfold_migrate', schemaname, tablename)
from pg_tables
where schemaname = 'public' and tableowner <> 'warpfold_migrate' \gexec
commit;
