"""Privileges of containers, and who reaches the pods of a cluster and whom they reach."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from lamina.config_check.containers import Container, templates_of
from lamina.config_check.documents import mapping_at, value_at
from lamina.config_check.findings import Finding, warning
from lamina.config_check.ray_clusters import CLUSTER_PATHS

INGRESS, EGRESS = "Ingress", "Egress"
_FAULTS = {INGRESS: "are reached from everywhere", EGRESS: "reach everywhere"}
_SECCOMP = ("RuntimeDefault", "Localhost")
_OWN_VARIABLES = ("LAMINA_", "RAY_")


def is_ours(document: Mapping[str, Any], container: Container) -> bool:
    """Report whether a container runs Ray or Lamina."""
    return document.get("kind") in CLUSTER_PATHS or any(name.startswith(_OWN_VARIABLES) for name in container.variables)


def check_privileges(container: Container) -> Iterator[Finding]:
    """Warn of a container that may do more than Lamina needs."""
    own, pod = mapping_at(container.spec, "securityContext"), mapping_at(container.pod, "securityContext")
    capabilities = value_at(own, "capabilities", "drop")
    seccomp = value_at({**pod, **own}, "seccompProfile", "type")
    has = {
        "runAsNonRoot: true": {**pod, **own}.get("runAsNonRoot") is True,
        "allowPrivilegeEscalation: false": own.get("allowPrivilegeEscalation") is False,
        "readOnlyRootFilesystem: true": own.get("readOnlyRootFilesystem") is True,
        "capabilities: {drop: [ALL]}": isinstance(capabilities, list) and "ALL" in capabilities,
        "seccompProfile: {type: RuntimeDefault}": seccomp in _SECCOMP,
        "privileged: false": own.get("privileged", False) is False,
    }
    if missing := [name for name, is_there in has.items() if not is_there]:
        yield warning(("securityContext",), f"lacks {', '.join(missing)}", "add it, as configs/kuberay does")


def check_reach(document: Mapping[str, Any], policies: Sequence[Mapping[str, Any]]) -> Iterator[Finding]:
    """Warn of the pods of a cluster that no NetworkPolicy guards in both directions."""
    for place, template in templates_of(document):
        labels = mapping_at(template, "metadata", "labels")
        guarding = [
            policy for policy in policies if mapping_at(policy, "podSelector", "matchLabels").items() <= labels.items()
        ]
        for direction, fault in _FAULTS.items():
            if not any(direction in _directions(policy) for policy in guarding):
                yield warning(
                    (*place, "metadata", "labels"),
                    f"{fault}: no NetworkPolicy of these files selects them",
                    f"add a NetworkPolicy with policyTypes: [{direction}] that selects their labels, "
                    "as configs/kuberay does",
                )


def _directions(policy: Mapping[str, Any]) -> Sequence[str]:
    """Return the directions that a policy limits, by Kubernetes' own defaults."""
    named = policy.get("policyTypes")
    return named if isinstance(named, list) else [INGRESS, *([EGRESS] if "egress" in policy else [])]
