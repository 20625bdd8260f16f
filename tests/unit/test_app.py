import pytest

from deployments.app import embedder_resources, replicas
from lamina.settings import EmbedderDeployment


@pytest.mark.parametrize("gpus", [1.0, 0.5, 8.0])
def test_where_ray_has_a_gpu_the_embedder_takes_its_share_of_one(gpus: float) -> None:
    device, resources = embedder_resources(EmbedderDeployment(gpu_fraction=0.3), gpus)

    assert device == "cuda"
    assert resources == {"num_cpus": 1, "num_gpus": 0.3}


def test_where_ray_has_no_gpu_the_embedder_reserves_cpus_alone() -> None:
    device, resources = embedder_resources(EmbedderDeployment(num_cpus=0.5), 0.0)

    assert device == "cpu"
    assert resources == {"num_cpus": 0.5}


def test_a_gpu_fraction_of_0_keeps_the_embedder_on_the_cpu() -> None:
    device, resources = embedder_resources(EmbedderDeployment(gpu_fraction=0, num_cpus=2), 4.0)

    assert device == "cpu"
    assert resources == {"num_cpus": 2}


def test_by_default_the_embedder_uses_a_gpu_that_is_there() -> None:
    assert embedder_resources(EmbedderDeployment(), 1.0)[0] == "cuda"


@pytest.mark.parametrize(("least", "most"), [(1, 1), (3, 3), (4, 2)])
def test_a_maximum_that_is_not_above_the_minimum_fixes_the_number(least: int, most: int) -> None:
    assert replicas(least, most) == {"num_replicas": least}


def test_a_higher_maximum_autoscales_between_the_two() -> None:
    assert replicas(2, 5) == {"autoscaling_config": {"min_replicas": 2, "max_replicas": 5}}
