"""The blows of the drill. Each falls while jobs are submitted, waits for what must follow, and leaves all machines at
work. What it returns is a line for the report."""

import time
from collections.abc import Callable, Sequence

from benchmarks.hosts.drill import PATIENCE_S, Drill, Wrong
from benchmarks.hosts.lab import Machine, until

Blow = Callable[[Drill, int], str]
"""A blow, during which so many jobs are submitted."""


def cut_off_worker(drill: Drill, jobs: int) -> str:
    """A machine with a worker is cut off in the middle of a job, and comes back"""
    stage = drill.stage
    return _lost(drill, jobs, stage.gamma, lambda: stage.lab.cut(stage.gamma), lambda: stage.lab.heal(stage.gamma))


def power_off_worker(drill: Drill, jobs: int) -> str:
    """All processes of a machine with a worker are killed in the middle of a job, and the machine boots again"""
    stage = drill.stage
    return _lost(drill, jobs, stage.gamma, stage.gamma.power_off, lambda: stage.boot(stage.gamma))


def power_off_leader(drill: Drill, jobs: int) -> str:
    """All processes of the machine whose dispatcher leads are killed, and the machine boots again"""
    stage = drill.stage
    leader = drill.leader()
    began = time.monotonic()
    leader.power_off()
    taken_over = _until_other_leads(drill, leader, began)
    drill.submit(jobs)
    stage.boot(leader)
    if leader in stage.workers:
        drill.until_ready(leader)
    return f"the dispatcher on {drill.leader().name} took over after {taken_over:.1f} s"


def cut_off_leader_with_worker(drill: Drill, jobs: int) -> str:
    """The machine of an api, of the dispatcher that leads and of a worker in the middle of a job is cut off"""
    stage = drill.stage
    if drill.leader() is not stage.beta:
        stage.alpha.power_off()
        _until_other_leads(drill, stage.alpha, time.monotonic())
        stage.boot(stage.alpha)
    return _lost(drill, jobs, stage.beta, lambda: stage.lab.cut(stage.beta), lambda: stage.lab.heal(stage.beta))


def cut_off_store(drill: Drill, jobs: int) -> str:
    """No machine reaches Postgres and Redis for a while, and one is in the middle of a job"""
    stage = drill.stage
    held = drill.hold(stage.gamma)
    drill.submit(jobs // 2)
    stage.lab.cut(stage.store.machine)
    time.sleep(10.0)
    stage.lab.heal(stage.store.machine)
    drill.submit(jobs - jobs // 2)
    drill.until_renewed(held, 2)
    drill.release(held)
    attempts = drill.job(held)["attempt"]
    return f"the running job ended by its attempt {attempts}"


def kill_redis(drill: Drill, jobs: int) -> str:
    """Redis is killed while jobs wait in it, and started again"""
    held = [drill.hold(machine) for machine in drill.stage.workers]
    drill.submit(jobs // 2)
    drill.stage.store.kill_redis()
    for job_id in held:
        drill.release(job_id)
    drill.stage.store.start_redis()
    drill.submit(jobs - jobs // 2)
    return ""


def kill_postgres(drill: Drill, jobs: int) -> str:
    """Postgres is killed in the middle of jobs, and started again"""
    held = [drill.hold(machine) for machine in drill.stage.workers]
    drill.submit(jobs // 2)
    drill.stage.store.kill_postgres()
    drill.stage.store.start_postgres()
    drill.submit(jobs - jobs // 2)
    for job_id in held:
        drill.release(job_id)
    attempts = [drill.job(job_id)["attempt"] for job_id in held]
    return f"the running jobs ended by their attempts {attempts[0]} and {attempts[1]}"


def fill_disks(drill: Drill, jobs: int) -> str:
    """The disks of all machines of the service are full, and are emptied again"""
    stage = drill.stage
    machines = (stage.alpha, stage.beta, stage.gamma)
    for machine in machines:
        machine.fill_disk()
    for machine in (stage.alpha, stage.beta):
        if not drill.upload_refused_by(machine):
            raise Wrong(f"the api on {machine.name} took an upload with a full disk")
    held = drill.hold(stage.gamma)
    drill.submit(jobs)
    drill.release(held)
    for machine in machines:
        machine.empty_disk()
    return "uploads were refused by 507, and jobs that need no disk ended meanwhile"


def step_clocks(drill: Drill, jobs: int) -> str:
    """The clock of one machine is an hour ahead from now on, and that of another one an hour behind"""
    stage = drill.stage
    if stage.gamma.clock is None or stage.beta.clock is None:
        drill.submit(jobs)
        return "not done: no compiler of C is there"
    held = drill.hold(stage.gamma)
    stage.gamma.clock.step(3600.0)
    stage.beta.clock.step(-3600.0)
    drill.submit(jobs)
    drill.until_renewed(held, 5)
    drill.release(held)
    attempts = drill.job(held)["attempt"]
    if attempts != 1:
        raise Wrong(f"a clock cost an attempt: {attempts}")
    return "no job was taken from its worker"


def bad_cable(drill: Drill, jobs: int) -> str:
    """The machine of an api, a dispatcher and a worker is cut off and comes back every second, for ten seconds"""
    stage = drill.stage
    held = drill.hold(stage.beta)
    for turn in range(5):
        stage.lab.cut(stage.beta)
        time.sleep(1.0)
        stage.lab.heal(stage.beta)
        drill.submit(jobs // 5 + (turn < jobs % 5))
    drill.release(held)
    return f"the running job ended by its attempt {drill.job(held)['attempt']}"


BLOWS: Sequence[Blow] = (
    cut_off_worker,
    power_off_leader,
    kill_redis,
    step_clocks,
    kill_postgres,
    cut_off_leader_with_worker,
    fill_disks,
    power_off_worker,
    cut_off_store,
    bad_cable,
)


def _lost(
    drill: Drill, jobs: int, machine: Machine, lose: Callable[[], object], bring_back: Callable[[], object]
) -> str:
    """A machine is lost in the middle of a job: the job runs elsewhere, and the machine works again when it is back."""
    held = drill.hold(machine)
    drill.submit(jobs // 2)
    began = drill.now()
    lose()
    drill.submit(jobs - jobs // 2)
    elsewhere = drill.until_elsewhere(held, machine, began)
    drill.release(held)
    bring_back()
    back = time.monotonic()
    drill.until_ready(machine)
    ready = time.monotonic() - back
    drill.release(drill.hold(machine))
    return f"its job ran elsewhere after {elsewhere:.1f} s; its worker was ready {ready:.1f} s after its return"


def _until_other_leads(drill: Drill, lost: Machine, began: float) -> float:
    until(lambda: drill.leader() is not lost, PATIENCE_S, f"another dispatcher than that on {lost.name} leads")
    return time.monotonic() - began
