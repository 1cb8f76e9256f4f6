"""Configuration keys of the cluster manager and of YARN; ``keys`` offers them with all others."""

from __future__ import annotations

from homeport.config.declarations.key_types import (
    OWN,
    BoolKey,
    IntKey,
    ListKey,
    Liveness,
    Reach,
    TextKey,
    TokensKey,
)

CONTAINER_MEMORY_MB = IntKey(
    name="cluster-manager.container.memory.mb",
    default=1024,
    minimum=1,
    meaning="memory of a container",
    legacy=("yarn.container.memory.mb",),
)
CONTAINER_CPU_CORES = IntKey(
    name="cluster-manager.container.cpu.cores",
    default=1,
    minimum=1,
    meaning="cores of a container",
    legacy=("yarn.container.cpu.cores",),
)
CONTAINER_REQUEST_TIMEOUT_MS = IntKey(
    name="cluster-manager.container.request.timeout.ms",
    default=5000,
    minimum=1,
    maximum=86_400_000,
    meaning="how long a container waits for its preferred host",
    source="HA-YARN",
    liveness=Liveness.LIVE,
    legacy=("yarn.container.request.timeout.ms",),
)
CONTAINER_RETRY_COUNT = IntKey(
    name="cluster-manager.container.retry.count",
    default=8,
    minimum=-1,
    meaning="failures of one container, within the window, that fail the job; -1: no limit",
    liveness=Liveness.LIVE,
    legacy=("yarn.container.retry.count",),
)
CONTAINER_RETRY_WINDOW_MS = IntKey(
    name="cluster-manager.container.retry.window.ms",
    default=300000,
    meaning="failures further apart than this are not added up",
    liveness=Liveness.LIVE,
    legacy=("yarn.container.retry.window.ms",),
)
CONTAINER_LAST_RETRY_DELAY_MS = IntKey(
    name="cluster-manager.container.preferred-host.last.retry.delay.ms",
    default=360000,
    maximum=86_400_000,
    meaning="wait before the last retry of a container that has a preferred host",
    liveness=Liveness.LIVE,
)
CONTAINER_FAIL_JOB_AFTER_RETRIES = BoolKey(
    name="cluster-manager.container.fail.job.after.retries",
    default=True,
    meaning="false: the job goes on without a container that used up its retries",
    liveness=Liveness.LIVE,
)
CONTAINER_LEASE_MS = IntKey(
    name="cluster-manager.container.lease.ms",
    default=10000,
    minimum=1,
    # A silent container is not replaced for so long.
    maximum=600_000,
    meaning="a container that cannot renew for this long ends itself",
    source=OWN,
)
CONTAINER_CHECK_IN_INTERVAL_MS = IntKey(
    name="cluster-manager.container.check-in.interval.ms",
    default=500,
    minimum=1,
    # An order reaches its launcher, and a correction of this key too, so much later.
    maximum=60_000,
    meaning="how often a launcher asks what to do; less often where more than 250 a second would",
    source=OWN,
    liveness=Liveness.LIVE,
)
CONTAINER_CHECK_IN_TIMEOUT_MS = IntKey(
    name="cluster-manager.container.check-in.timeout.ms",
    default=60000,
    minimum=1,
    # A launcher that never comes up holds its container back for so long.
    maximum=3_600_000,
    meaning="a granted container that has not checked in for this long is requested again; the "
    "default is five times as long with yarn.python.archive",
    source=OWN,
    liveness=Liveness.LIVE,
)
FAULT_DOMAINS_PREFERRED = BoolKey(
    name="cluster-manager.fault-domain-aware.standby.enabled",
    default=False,
    meaning="an active container and its standbys are put in different racks if possible",
    liveness=Liveness.LIVE,
)
FAULT_DOMAINS_REQUIRED = BoolKey(
    name="cluster-manager.fault-domain-aware.standby.required",
    default=False,
    meaning="they are always in different racks: one that has no rack of its own waits",
    source=OWN,
    liveness=Liveness.LIVE,
)
CLUSTER_MANAGER_HOSTS = ListKey(
    name="cluster-manager.hosts",
    meaning="hosts to know at submission, beyond those that the ResourceManager lists",
    source=OWN,
)
COMMAND_TIMEOUT_MS = IntKey(
    name="cluster-manager.command.timeout.ms",
    default=600_000,
    minimum=1,
    maximum=86_400_000,
    meaning="an operator's move or restart that comes no further for this long has failed",
    source=OWN,
    liveness=Liveness.LIVE,
)
ROLLING_RESTART_WATCH_MS = IntKey(
    name="cluster-manager.rolling-restart.watch.ms",
    default=60_000,
    minimum=0,
    maximum=86_400_000,
    meaning="how long a container is watched that was restarted for a changed key, before the next",
    source=OWN,
    liveness=Liveness.LIVE,
)
WARM_MOVE_MAX_RECORDS = IntKey(
    name="cluster-manager.warm-move.max.records",
    default=10_000,
    minimum=0,
    own_unit="records",
    meaning="how far the standby of a warm move may be behind when the container stops",
    source=OWN,
    liveness=Liveness.LIVE,
)
DRAINED_HOSTS = ListKey(
    name="cluster-manager.drained.hosts",
    meaning="hosts that get no container of the job; what runs there is moved by homeport drain",
    source=OWN,
    liveness=Liveness.LIVE,
)
JOB_COORDINATOR_URL_HOST = TextKey(
    name="cluster-manager.jobcoordinator.url.host",
    meaning="host name or address in the job coordinator's URL; default the AM's, or processor's",
    source=OWN,
)
JOB_COORDINATOR_URL_PORT = IntKey(
    name="cluster-manager.jobcoordinator.url.port",
    default=0,
    maximum=65_535,
    meaning="port of the job coordinator; 0: any free one",
)

JOB_COORDINATOR_TLS = BoolKey(
    name="cluster-manager.jobcoordinator.tls.enabled",
    default=False,
    meaning="job coordinator and lease keeper serve https, with a certificate of the submission",
    source=OWN,
)

JOB_COORDINATOR_URL_NAMES = ListKey(
    name="cluster-manager.jobcoordinator.url.names",
    meaning="further host names of the job coordinator, as of a proxy or an alias",
    source=OWN,
    liveness=Liveness.LIVE,
    reach=Reach.ACCESS,
)
JOB_COORDINATOR_READ_OPEN = BoolKey(
    name="cluster-manager.jobcoordinator.read.open",
    default=True,
    meaning="each program that reaches the port may read, secrets masked; false: with a token",
    source=OWN,
    reach=Reach.ACCESS,
)
JOB_COORDINATOR_READ_TOKENS = TokensKey(
    name="cluster-manager.jobcoordinator.tokens.read",
    meaning="digests of tokens that show, beside what is open, last log lines of failures",
    source=OWN,
    liveness=Liveness.LIVE,
    reach=Reach.ACCESS,
)
JOB_COORDINATOR_OPERATE_TOKENS = TokensKey(
    name="cluster-manager.jobcoordinator.tokens.operate",
    meaning="digests of tokens that may change the running job; written by homeport token",
    source=OWN,
    liveness=Liveness.LIVE,
    reach=Reach.ACCESS,
)
JOB_COORDINATOR_ACCESS_GENERATION = IntKey(
    name="cluster-manager.jobcoordinator.access.generation",
    default=0,
    minimum=0,
    meaning="number of the job's own token and certificate; homeport token exchange counts it up",
    source=OWN,
    liveness=Liveness.LIVE,
    reach=Reach.ACCESS,
)

# --------------------------------------------------------------------------------------------- yarn

YARN_PACKAGE_PATH = TextKey(
    name="yarn.package.path",
    meaning="folder, zip or tar.gz with the job's code, or a URL of one; needed by run-job",
    reach=Reach.PLACE,
)
YARN_QUEUE = TextKey(name="yarn.queue", default="default", meaning="queue to submit to")
YARN_CONTAINER_LABEL = TextKey(
    name="yarn.container.label",
    meaning="label of the nodes that containers run on; default the queue's default label",
)
YARN_AM_LABEL = TextKey(
    name="yarn.am.container.label",
    meaning="label of the nodes that the AM runs on; default the queue's default label",
)
YARN_AM_MEMORY_MB = IntKey(
    name="yarn.am.container.memory.mb",
    default=1024,
    minimum=1,
    meaning="memory of the AM's container",
)
YARN_AM_CPU_CORES = IntKey(
    name="yarn.am.container.cpu.cores", default=1, minimum=1, meaning="cores of the AM's container"
)
YARN_AM_MAX_ATTEMPTS = IntKey(
    name="yarn.am.max-attempts",
    default=10,
    minimum=1,
    meaning="attempts that YARN gives the application",
    source=OWN,
)
YARN_PYTHON_EXECUTABLE = TextKey(
    name="yarn.python.executable",
    meaning="interpreter with homeport installed, present on every node; default the submitter's",
    source=OWN,
    reach=Reach.PLACE,
)
YARN_PYTHON_ARCHIVE = TextKey(
    name="yarn.python.archive",
    meaning="path or URL of an environment by homeport pack, which is unpacked on each node",
    source=OWN,
    reach=Reach.PLACE,
)
YARN_KERBEROS_PRINCIPAL = TextKey(
    name="yarn.kerberos.principal",
    meaning="Kerberos principal as which run-job submits; default the one that kinit has made",
    reach=Reach.PLACE,
)
YARN_KERBEROS_KEYTAB = TextKey(
    name="yarn.kerberos.keytab",
    meaning="path of that principal's keytab on the submitter's machine; it goes nowhere else",
    reach=Reach.PLACE,
)
YARN_AM_TRACKING_URL = TextKey(
    name="yarn.am.tracking.url",
    meaning="URL of the job coordinator; the AM writes it, run-job and the tools read it",
    liveness=Liveness.LIVE,
)
YARN_AM_CERTIFICATE = TextKey(
    name="yarn.am.certificate",
    meaning="certificate at that URL (PEM); the AM writes it, run-job and the tools trust it alone",
    source=OWN,
    liveness=Liveness.LIVE,
)
