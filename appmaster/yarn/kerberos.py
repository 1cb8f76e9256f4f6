"""The login of ``run-job`` on a cluster with Kerberos.

A login by keytab is for unattended programs. Without one, Hadoop's client uses the ticket from
``kinit``. The keytab stays on the submitter's machine: containers get tokens.
"""

import os
from dataclasses import dataclass
from pathlib import Path

from homeport.config.config import Config
from homeport.config.declarations import all_keys as keys
from homeport.config.settings.sections import YarnConfig


@dataclass(frozen=True, slots=True)
class KerberosLogin:
    """``keytab``: an absolute path on this machine."""

    principal: str
    keytab: str


def kerberos_login(config: Config) -> KerberosLogin | None:
    """Return the login in the configuration; None where it has none.

    ConfigError: one of the two keys is missing, or the keytab cannot be read.
    """
    yarn = YarnConfig.of(config)
    principal, keytab = yarn.kerberos_principal, yarn.kerberos_keytab
    if principal is None and keytab is None:
        return None
    if principal is None or keytab is None:
        present, absent = keys.YARN_KERBEROS_PRINCIPAL, keys.YARN_KERBEROS_KEYTAB
        if principal is None:
            present, absent = absent, present
        rule = f"a login needs both, and {absent.name} is not set"
        remedy = f"set {absent.name}, or remove {present.name} and use kinit"
        raise present.error(principal or keytab, rule, remedy)
    path = Path(keytab).expanduser().absolute()
    if not path.is_file() or not os.access(path, os.R_OK):
        rule = f"{path} is no file that this user may read"
        remedy = "name the principal's keytab on this machine"
        raise keys.YARN_KERBEROS_KEYTAB.error(keytab, rule, remedy)
    return KerberosLogin(principal, str(path))
