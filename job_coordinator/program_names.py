"""The programs of a job by what their command lines say, to be found among processes."""

from typing import Final

CONTAINER: Final = "-m homeport.container.incarnation.container_runner"
LAUNCHER: Final = "-m homeport.container.launcher.launcher"
DRIVER: Final = "-m homeport.appmaster.programs.application_master"
KEEPER: Final = "-m homeport.appmaster.programs.lease_keeper"
AM_JVM: Final = "com.anaconda.skein.ApplicationMaster"
SPARE_NAME: Final = "spare"
"""In ``ps -o comm``: a program of the AM that waits with its imports done."""
