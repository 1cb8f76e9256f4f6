"""Configuration keys of the cluster manager and of YARN; ``keys`` offers them with all others."""

from homeport.config.declarations.key_types import (
    OWN,
    BoolKey,
    IntKey,
    Liveness,
    OwnBoolKey,
    OwnIntKey,
    OwnListKey,
    OwnTextKey,
    Reach,
    TextKey,
    TokensKey,
)

CONTAINER_MEMORY_MB = IntKey(
    "cluster-manager.container.memory.mb",
    "memory of a container",
    default=1024,
    legacy=("yarn.container.memory.mb",),
)
CONTAINER_CPU_CORES = IntKey(
    "cluster-manager.container.cpu.cores",
    "cores of a container",
    default=1,
    legacy=("yarn.container.cpu.cores",),
)
CONTAINER_REQUEST_TIMEOUT_MS = IntKey(
    "cluster-manager.container.request.timeout.ms",
    "how long a container waits for its preferred host",
    default=5000,
    maximum=86_400_000,
    source="HA-YARN",
    liveness=Liveness.LIVE,
    legacy=("yarn.container.request.timeout.ms",),
)
CONTAINER_RETRY_COUNT = IntKey(
    "cluster-manager.container.retry.count",
    "failures of one container, within the window, that fail the job; -1: no limit",
    default=8,
    minimum=-1,
    liveness=Liveness.LIVE,
    legacy=("yarn.container.retry.count",),
)
CONTAINER_RETRY_WINDOW_MS = IntKey(
    "cluster-manager.container.retry.window.ms",
    "failures further apart than this are not added up",
    default=300000,
    minimum=0,
    liveness=Liveness.LIVE,
    legacy=("yarn.container.retry.window.ms",),
)
CONTAINER_LAST_RETRY_DELAY_MS = IntKey(
    "cluster-manager.container.preferred-host.last.retry.delay.ms",
    "wait before the last retry of a container that has a preferred host",
    default=360000,
    minimum=0,
    maximum=86_400_000,
    liveness=Liveness.LIVE,
)
CONTAINER_FAIL_JOB_AFTER_RETRIES = BoolKey(
    "cluster-manager.container.fail.job.after.retries",
    "false: the job goes on without a container that used up its retries",
    default=True,
    liveness=Liveness.LIVE,
)
CONTAINER_LEASE_MS = OwnIntKey(
    "cluster-manager.container.lease.ms",
    "a container that cannot renew for this long ends itself",
    default=10000,
    # A silent container is not replaced for so long.
    maximum=600_000,
)
CONTAINER_CHECK_IN_INTERVAL_MS = OwnIntKey(
    "cluster-manager.container.check-in.interval.ms",
    "how often a launcher asks what to do; less often where more than 250 a second would",
    default=500,
    # An order reaches its launcher, and a correction of this key too, so much later.
    maximum=60_000,
    liveness=Liveness.LIVE,
)
CONTAINER_CHECK_IN_TIMEOUT_MS = OwnIntKey(
    "cluster-manager.container.check-in.timeout.ms",
    "a granted container that has not checked in for this long is requested again; the default is "
    "five times as long with yarn.python.archive",
    default=60000,
    # A launcher that never comes up holds its container back for so long.
    maximum=3_600_000,
    liveness=Liveness.LIVE,
)
FAULT_DOMAINS_PREFERRED = BoolKey(
    "cluster-manager.fault-domain-aware.standby.enabled",
    "an active container and its standbys are put in different racks if possible",
    liveness=Liveness.LIVE,
)
FAULT_DOMAINS_REQUIRED = OwnBoolKey(
    "cluster-manager.fault-domain-aware.standby.required",
    "they are always in different racks: one that has no rack of its own waits",
    liveness=Liveness.LIVE,
)
COMMAND_TIMEOUT_MS = OwnIntKey(
    "cluster-manager.command.timeout.ms",
    "an operator's move or restart that comes no further for this long has failed; tasks that wait "
    "for their state to be read move without it",
    default=600_000,
    maximum=86_400_000,
    liveness=Liveness.LIVE,
)
ROLLING_RESTART_WATCH_MS = OwnIntKey(
    "cluster-manager.rolling-restart.watch.ms",
    "how long a container is watched that was restarted for a changed key, before the next",
    default=60_000,
    minimum=0,
    maximum=86_400_000,
    liveness=Liveness.LIVE,
)
WARM_MOVE_MAX_RECORDS = OwnIntKey(
    "cluster-manager.warm-move.max.records",
    "how far a standby that reads ahead of a move may be behind when the container, or task, moves",
    default=10_000,
    minimum=0,
    own_unit="records",
    liveness=Liveness.LIVE,
)
DRAINED_HOSTS = OwnListKey(
    "cluster-manager.drained.hosts",
    "hosts that get no container of the job; what runs there is moved by homeport drain",
    liveness=Liveness.LIVE,
)
JOB_COORDINATOR_URL_HOST = OwnTextKey(
    "cluster-manager.jobcoordinator.url.host",
    "host name or address in the job coordinator's URL; default the AM's, or processor's",
)
JOB_COORDINATOR_URL_PORT = IntKey(
    "cluster-manager.jobcoordinator.url.port",
    "port of the job coordinator; 0: any free one",
    default=0,
    minimum=0,
    maximum=65_535,
)

JOB_COORDINATOR_TLS = OwnBoolKey(
    "cluster-manager.jobcoordinator.tls.enabled",
    "job coordinator and lease keeper serve https, with a certificate of the submission",
)

JOB_COORDINATOR_URL_NAMES = OwnListKey(
    "cluster-manager.jobcoordinator.url.names",
    "further host names of the job coordinator, as of a proxy or an alias",
    liveness=Liveness.LIVE,
    reach=Reach.ACCESS,
)
JOB_COORDINATOR_READ_OPEN = OwnBoolKey(
    "cluster-manager.jobcoordinator.read.open",
    "each program that reaches the port may read, secrets masked; false: with a token",
    default=True,
    reach=Reach.ACCESS,
)
JOB_COORDINATOR_READ_TOKENS = TokensKey(
    "cluster-manager.jobcoordinator.tokens.read",
    "digests of tokens that show, beside what is open, last log lines of failures",
    source=OWN,
    liveness=Liveness.LIVE,
    reach=Reach.ACCESS,
)
JOB_COORDINATOR_OPERATE_TOKENS = TokensKey(
    "cluster-manager.jobcoordinator.tokens.operate",
    "digests of tokens that may change the running job; written by homeport token",
    source=OWN,
    liveness=Liveness.LIVE,
    reach=Reach.ACCESS,
)
JOB_COORDINATOR_ACCESS_GENERATION = OwnIntKey(
    "cluster-manager.jobcoordinator.access.generation",
    "number of the job's own token and certificate; homeport token exchange counts it up",
    default=0,
    minimum=0,
    liveness=Liveness.LIVE,
    reach=Reach.ACCESS,
)

# --------------------------------------------------------------------------------------------- yarn

YARN_PACKAGE_PATH = TextKey(
    "yarn.package.path",
    "folder, zip, tar.gz or Python file with the job's code, or a URL of an archive; needed by "
    "run-job",
    reach=Reach.PLACE,
)
YARN_QUEUE = TextKey("yarn.queue", "queue to submit to", default="default")
YARN_CONTAINER_LABEL = TextKey(
    "yarn.container.label",
    "label of the nodes that containers run on; default the queue's default label",
)
YARN_AM_LABEL = TextKey(
    "yarn.am.container.label",
    "label of the nodes that the AM runs on; default the queue's default label",
)
YARN_AM_MEMORY_MB = IntKey(
    "yarn.am.container.memory.mb", "memory of the AM's container", default=1024
)
YARN_AM_CPU_CORES = IntKey("yarn.am.container.cpu.cores", "cores of the AM's container", default=1)
YARN_AM_MAX_ATTEMPTS = OwnIntKey(
    "yarn.am.max-attempts", "attempts that YARN gives the application", default=10
)
YARN_PYTHON_EXECUTABLE = OwnTextKey(
    "yarn.python.executable",
    "interpreter with homeport installed, present on every node; default the submitter's",
    reach=Reach.PLACE,
)
YARN_PYTHON_ARCHIVE = OwnTextKey(
    "yarn.python.archive",
    "path or URL of an environment by homeport pack, which is unpacked on each node",
    reach=Reach.PLACE,
)
YARN_KERBEROS_PRINCIPAL = TextKey(
    "yarn.kerberos.principal",
    "Kerberos principal as which run-job submits; default the one that kinit has made",
    reach=Reach.PLACE,
)
YARN_KERBEROS_KEYTAB = TextKey(
    "yarn.kerberos.keytab",
    "path of that principal's keytab on the submitter's machine; it goes nowhere else",
    reach=Reach.PLACE,
)
YARN_AM_TRACKING_URL = TextKey(
    "yarn.am.tracking.url",
    "URL of the job coordinator; the AM, or run-local, writes it, and the tools read it",
    liveness=Liveness.LIVE,
)
YARN_AM_INPUTS = OwnTextKey(
    "yarn.am.inputs",
    "inputs, systems and stores in force that are not the submission's (JSON); the AM writes it "
    "for its next attempt",
    liveness=Liveness.LIVE,
)
YARN_AM_CERTIFICATE = OwnTextKey(
    "yarn.am.certificate",
    "certificate at that URL (PEM); the AM writes it, run-job and the tools trust it alone",
    liveness=Liveness.LIVE,
)
