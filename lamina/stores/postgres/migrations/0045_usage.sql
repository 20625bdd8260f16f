-- What each tenant used, by day in UTC, for bills.
CREATE TABLE usage_days (
    tenant text NOT NULL,
    day date NOT NULL,
    requests bigint NOT NULL DEFAULT 0,
    searches bigint NOT NULL DEFAULT 0,
    turns bigint NOT NULL DEFAULT 0,
    embedded_tokens bigint NOT NULL DEFAULT 0,
    model_tokens bigint NOT NULL DEFAULT 0,
    bytes bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (tenant, day)
);
