-- A digest of the settings that a run of the command line works by; null: those of the service, whichever it has then.
ALTER TABLE job_runs ADD COLUMN settings_digest text;
