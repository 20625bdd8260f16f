"""The kinds of Kubernetes and KubeRay (1.7) that a deployment of Lamina is written in.

What Lamina's manifests have nothing to do with is not looked at; a key that does not exist is always found.
"""

from collections.abc import Mapping

from lamina.config_check.prometheus import RULES
from lamina.config_check.shapes import (
    ANYTHING,
    COUNT,
    FLAG,
    LABELS,
    NUMBER,
    OPEN,
    PORT,
    POSITIVE,
    TEXT,
    TEXTS,
    Either,
    Keyed,
    Listed,
    Mapped,
    Shape,
    Text,
    keyed,
    unchecked,
)

NAME = Text(pattern=r"[a-z0-9]([a-z0-9.-]{0,250}[a-z0-9])?", meaning="a name of a-z, 0-9, - and .")
CLUSTER_NAME = Text(pattern=r"[a-z]([a-z0-9-]{0,51}[a-z0-9])?", meaning="a name of at most 53 a-z, 0-9 and -")
CRON = Text(pattern=r"\S+( +\S+){4}|@\w+", meaning="five cron fields in quotes")
QUANTITY = Either(
    (
        Text(
            pattern=r"[+-]?(\d+(\.\d*)?|\.\d+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?\d+)?",
            meaning="a quantity, as in 500m, 4 or 12Gi",
        ),
        NUMBER,
    )
)
PORT_OR_NAME = Either((PORT, TEXT))
META = keyed("name", name=NAME, namespace=NAME, labels=LABELS, annotations=LABELS, **unchecked("finalizers"))
ENV = keyed("name", name=TEXT, value=TEXT, valueFrom=OPEN)
_HTTP = keyed("port", path=TEXT, port=PORT_OR_NAME, scheme=TEXT, **unchecked("host httpHeaders"))
PROBE = keyed(
    "",
    httpGet=_HTTP,
    exec=keyed("command", command=TEXTS),
    initialDelaySeconds=COUNT,
    periodSeconds=POSITIVE,
    timeoutSeconds=POSITIVE,
    successThreshold=POSITIVE,
    failureThreshold=POSITIVE,
    **unchecked("tcpSocket grpc terminationGracePeriodSeconds"),
)
RESOURCES = keyed("", requests=Mapped(QUANTITY), limits=Mapped(QUANTITY), claims=ANYTHING)
MOUNT = keyed(
    "name mountPath",
    name=TEXT,
    mountPath=TEXT,
    readOnly=FLAG,
    subPath=TEXT,
    **unchecked("subPathExpr mountPropagation recursiveReadOnly"),
)
CONTAINER = keyed(
    "name image",
    name=NAME,
    image=TEXT,
    imagePullPolicy=Text(("Always", "IfNotPresent", "Never")),
    command=TEXTS,
    args=TEXTS,
    workingDir=TEXT,
    env=Listed(ENV),
    ports=Listed(keyed("containerPort", containerPort=PORT, name=TEXT, **unchecked("protocol hostPort hostIP"))),
    resources=RESOURCES,
    volumeMounts=Listed(MOUNT),
    livenessProbe=PROBE,
    readinessProbe=PROBE,
    startupProbe=PROBE,
    **unchecked(
        "envFrom lifecycle securityContext restartPolicy stdin tty terminationMessagePath terminationMessagePolicy "
        "volumeDevices resizePolicy restartPolicyRules stdinOnce"
    ),
)
POD = keyed(
    "containers",
    containers=Listed(CONTAINER, least=1),
    initContainers=Listed(CONTAINER),
    volumes=Listed(Mapped(ANYTHING)),
    restartPolicy=Text(("Always", "OnFailure", "Never")),
    nodeSelector=LABELS,
    terminationGracePeriodSeconds=COUNT,
    serviceAccountName=TEXT,
    automountServiceAccountToken=FLAG,
    priorityClassName=TEXT,
    **unchecked(
        "affinity tolerations topologySpreadConstraints securityContext imagePullSecrets hostNetwork hostIPC hostPID "
        "dnsPolicy dnsConfig schedulerName runtimeClassName activeDeadlineSeconds hostAliases enableServiceLinks "
        "preemptionPolicy shareProcessNamespace schedulingGates resourceClaims hostname subdomain os overhead "
        "resources priority hostnameOverride nodeName setHostnameAsFQDN serviceAccount readinessGates "
        "ephemeralContainers hostUsers schedulingGroup"
    ),
)
_POD_META = keyed("", labels=LABELS, annotations=LABELS, name=NAME, namespace=NAME, finalizers=TEXTS)
TEMPLATE = keyed("spec", metadata=_POD_META, spec=POD)
GROUP_RESOURCES = LABELS
HEAD = keyed(
    "template",
    template=TEMPLATE,
    rayStartParams=LABELS,
    resources=GROUP_RESOURCES,
    labels=LABELS,
    serviceType=TEXT,
    enableIngress=FLAG,
    **unchecked("headService ingressOptions"),
)
WORKERS = keyed(
    "groupName template",
    groupName=NAME,
    template=TEMPLATE,
    replicas=COUNT,
    minReplicas=COUNT,
    maxReplicas=COUNT,
    idleTimeoutSeconds=COUNT,
    priority=COUNT,
    rayStartParams=LABELS,
    resources=GROUP_RESOURCES,
    labels=LABELS,
    numOfHosts=POSITIVE,
    suspend=FLAG,
    scaleStrategy=ANYTHING,
)
FAULT_TOLERANCE = keyed(
    "",
    backend=Text(("redis", "rocksdb")),
    redisAddress=TEXT,
    redisUsername=OPEN,
    redisPassword=OPEN,
    externalStorageNamespace=TEXT,
    storage=keyed(
        "",
        claimName=TEXT,
        size=QUANTITY,
        storageClassName=TEXT,
        accessModes=TEXTS,
        subPath=TEXT,
        deletionPolicy=Text(("DeleteWithCluster", "Retain")),
    ),
)
AUTOSCALER = keyed(
    "",
    version=Text(("v1", "v2")),
    idleTimeoutSeconds=COUNT,
    upscalingMode=Text(("Default", "Aggressive", "Conservative")),
    resources=RESOURCES,
    image=TEXT,
    imagePullPolicy=TEXT,
    env=Listed(ENV),
    **unchecked("securityContext envFrom volumeMounts command args"),
)
CLUSTER = keyed(
    "headGroupSpec rayVersion",
    rayVersion=Text(pattern=r"\d+\.\d+\.\d+", meaning="Ray's version in quotes"),
    headGroupSpec=HEAD,
    workerGroupSpecs=Listed(WORKERS),
    enableInTreeAutoscaling=FLAG,
    autoscalerOptions=AUTOSCALER,
    gcsFaultToleranceOptions=FAULT_TOLERANCE,
    authOptions=keyed("", mode=Text(("disabled", "token")), secretName=TEXT, enableK8sTokenAuth=FLAG),
    suspend=FLAG,
    headServiceAnnotations=LABELS,
    upgradeStrategy=keyed("", type=Text(("Recreate", "None"))),
    **unchecked("managedBy historyServerOptions networkPolicy tlsOptions"),
)
RAY_SERVICE = keyed(
    "serveConfigV2 rayClusterConfig",
    serveConfigV2=TEXT,
    rayClusterConfig=CLUSTER,
    upgradeStrategy=keyed(
        "",
        type=Text(("NewCluster", "NewClusterWithIncrementalUpgrade", "None")),
        clusterUpgradeOptions=keyed(
            "stepSizePercent intervalSeconds gatewayClassName",
            maxSurgePercent=COUNT,
            stepSizePercent=COUNT,
            intervalSeconds=COUNT,
            gatewayClassName=TEXT,
        ),
    ),
    rayClusterDeletionDelaySeconds=COUNT,
    excludeHeadPodFromServeSvc=FLAG,
    suspend=FLAG,
    **unchecked("serveService managedBy"),
)
RAY_JOB = keyed(
    "entrypoint",
    entrypoint=TEXT,
    rayClusterSpec=CLUSTER,
    clusterSelector=LABELS,
    submissionMode=Text(("K8sJobMode", "HTTPMode", "InteractiveMode", "SidecarMode")),
    submitterPodTemplate=TEMPLATE,
    submitterConfig=keyed("", backoffLimit=COUNT),
    shutdownAfterJobFinishes=FLAG,
    ttlSecondsAfterFinished=COUNT,
    activeDeadlineSeconds=POSITIVE,
    preRunningDeadlineSeconds=POSITIVE,
    backoffLimit=COUNT,
    runtimeEnvYAML=TEXT,
    jobId=TEXT,
    entrypointResources=TEXT,
    entrypointNumCpus=NUMBER,
    entrypointNumGpus=NUMBER,
    metadata=LABELS,
    suspend=FLAG,
    **unchecked("deletionStrategy managedBy"),
)
RAY_CRON_JOB = keyed("schedule jobTemplate", schedule=CRON, jobTemplate=RAY_JOB, timeZone=TEXT, suspend=FLAG)
JOB = keyed(
    "template",
    template=TEMPLATE,
    backoffLimit=COUNT,
    activeDeadlineSeconds=POSITIVE,
    ttlSecondsAfterFinished=COUNT,
    completions=POSITIVE,
    parallelism=COUNT,
    suspend=FLAG,
    **unchecked("selector manualSelector completionMode podFailurePolicy podReplacementPolicy backoffLimitPerIndex"),
)
CRON_JOB = keyed(
    "schedule jobTemplate",
    schedule=CRON,
    timeZone=TEXT,
    concurrencyPolicy=Text(("Allow", "Forbid", "Replace")),
    startingDeadlineSeconds=COUNT,
    successfulJobsHistoryLimit=COUNT,
    failedJobsHistoryLimit=COUNT,
    suspend=FLAG,
    jobTemplate=keyed("spec", metadata=keyed("", labels=LABELS, annotations=LABELS), spec=JOB),
)
DEPLOYMENT = keyed(
    "selector template",
    selector=OPEN,
    template=TEMPLATE,
    replicas=COUNT,
    **unchecked("strategy minReadySeconds revisionHistoryLimit progressDeadlineSeconds paused"),
)
DISRUPTIONS = keyed(
    "selector",
    selector=OPEN,
    minAvailable=Either((COUNT, TEXT)),
    maxUnavailable=Either((COUNT, TEXT)),
    unhealthyPodEvictionPolicy=Text(("IfHealthyBudget", "AlwaysAllow")),
)
SERVICE = keyed(
    "ports",
    selector=LABELS,
    type=Text(("ClusterIP", "NodePort", "LoadBalancer", "ExternalName")),
    ports=Listed(
        keyed(
            "port", name=TEXT, port=PORT, targetPort=PORT_OR_NAME, nodePort=PORT, **unchecked("protocol appProtocol")
        ),
        least=1,
    ),
    **unchecked(
        "clusterIP clusterIPs externalTrafficPolicy internalTrafficPolicy sessionAffinity sessionAffinityConfig "
        "loadBalancerClass loadBalancerSourceRanges publishNotReadyAddresses ipFamilies ipFamilyPolicy "
        "trafficDistribution"
    ),
)
NETWORK_POLICY = keyed(
    "podSelector", podSelector=OPEN, policyTypes=Listed(Text(("Ingress", "Egress"))), ingress=ANYTHING, egress=ANYTHING
)
CLAIM = keyed(
    "accessModes resources",
    accessModes=TEXTS,
    resources=RESOURCES,
    storageClassName=TEXT,
    **unchecked("volumeMode volumeName selector dataSource dataSourceRef"),
)
ENDPOINT = keyed(
    "",
    port=TEXT,
    targetPort=PORT_OR_NAME,
    portNumber=PORT,
    path=TEXT,
    interval=TEXT,
    scrapeTimeout=TEXT,
    scheme=Text(("http", "https", "HTTP", "HTTPS")),
    **unchecked(
        "relabelings metricRelabelings params honorLabels honorTimestamps tlsConfig basicAuth authorization "
        "followRedirects enableHttp2 filterRunning oauth2 proxyUrl bearerTokenSecret trackTimestampsStaleness"
    ),
)
_MONITORED = unchecked(
    "jobLabel sampleLimit targetLimit labelLimit podTargetLabels targetLabels attachMetadata scrapeProtocols "
    "selectorMechanism labelNameLengthLimit labelValueLengthLimit"
)
SERVICE_MONITOR = keyed(
    "selector endpoints",
    selector=OPEN,
    namespaceSelector=ANYTHING,
    endpoints=Listed(ENDPOINT, least=1),
    **_MONITORED,
)
POD_MONITOR = keyed(
    "selector podMetricsEndpoints",
    selector=OPEN,
    namespaceSelector=ANYTHING,
    podMetricsEndpoints=Listed(ENDPOINT, least=1),
    **_MONITORED,
)


def _of(version: str, spec: Shape, meta: Shape = META) -> tuple[str, Keyed]:
    return version, keyed(
        "apiVersion kind metadata spec", apiVersion=TEXT, kind=TEXT, metadata=meta, spec=spec, status=ANYTHING
    )


def _without_spec(version: str, **keys: Shape) -> tuple[str, Keyed]:
    return version, keyed("apiVersion kind metadata", apiVersion=TEXT, kind=TEXT, metadata=META, **keys)


_RAY_META = Keyed({**META.keys, "name": CLUSTER_NAME}, META.required)
KINDS: Mapping[str, tuple[str, Keyed]] = {
    "RayService": _of("ray.io/v1", RAY_SERVICE, _RAY_META),
    "RayJob": _of("ray.io/v1", RAY_JOB, _RAY_META),
    "RayCronJob": _of("ray.io/v1", RAY_CRON_JOB, _RAY_META),
    "RayCluster": _of("ray.io/v1", CLUSTER, _RAY_META),
    "CronJob": _of("batch/v1", CRON_JOB),
    "Job": _of("batch/v1", JOB),
    "Deployment": _of("apps/v1", DEPLOYMENT),
    "PodDisruptionBudget": _of("policy/v1", DISRUPTIONS),
    "Service": _of("v1", SERVICE),
    "NetworkPolicy": _of("networking.k8s.io/v1", NETWORK_POLICY),
    "PersistentVolumeClaim": _of("v1", CLAIM),
    "ServiceMonitor": _of("monitoring.coreos.com/v1", SERVICE_MONITOR),
    "PodMonitor": _of("monitoring.coreos.com/v1", POD_MONITOR),
    "PrometheusRule": _of("monitoring.coreos.com/v1", RULES),
    "ConfigMap": _without_spec("v1", data=LABELS, binaryData=LABELS, immutable=FLAG),
    "Secret": _without_spec("v1", data=LABELS, stringData=LABELS, type=TEXT, immutable=FLAG),
    "Namespace": _without_spec("v1", spec=ANYTHING),
    "ServiceAccount": _without_spec("v1", **unchecked("automountServiceAccountToken imagePullSecrets secrets")),
}
