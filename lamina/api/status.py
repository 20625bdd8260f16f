"""How the service runs its model."""

from pydantic import BaseModel, Field

from lamina.api.fields import Output


class ModelOut(Output):
    """The embedding model as one process runs it."""

    model: str = Field(
        description="Its name; vectors of another name are never compared with its own. "
        "Only an admin sees the folder of one that is none of a hub."
    )
    dimension: int = Field(description="Length of its vectors.")
    runtime: str = Field(description="onnx, torch, endpoint or hashing.")
    precision: str = Field(description="Type in which it computes.")
    device: str = Field(description="Processor or GPU, by the runtime's own name.")
    checked: str | None = Field(
        description="Against what the vectors of its ONNX graph were compared: recorded vectors, torch, or nothing "
        "(unchecked, or the model's own file); null where there is no graph."
    )
    may_be_mixed: bool = Field(
        description="Whether its vectors are known to agree with those of the other runtime to 1e-3, or to the cosine "
        "of half precision: then a change of runtime embeds nothing anew."
    )


class StatusOut(BaseModel):
    """The service's release and its model."""

    version: str = Field(description="Version of Lamina.")
    model: ModelOut = Field(description="The embedding model, and how it is run.")
