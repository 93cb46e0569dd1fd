"""Triggers that record the changes which the tables of the service overwrite."""

STUDENTS = """
CREATE TABLE student_history (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, student_id bigint NOT NULL, at timestamptz NOT NULL,
    available boolean NOT NULL, measured boolean NOT NULL, location geography);
CREATE INDEX ON student_history (student_id, at);
CREATE FUNCTION record_student_history() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO student_history (student_id, at, available, measured, location)
    VALUES (NEW.id, clock_timestamp(), NEW.available,
            TG_OP = 'INSERT' OR (OLD.completed, OLD.month) IS DISTINCT FROM (NEW.completed, NEW.month)
            OR OLD.location::text IS DISTINCT FROM NEW.location::text, NEW.location);
    RETURN NULL;
END $$;
CREATE TRIGGER student_history AFTER INSERT OR UPDATE ON students
FOR EACH ROW EXECUTE FUNCTION record_student_history();
"""

# A second send inserts no second row into recorded_pushes, but the BEFORE trigger still fires and records it.
PUSHES = """
CREATE TABLE push_history (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, notification_id uuid NOT NULL, device_id text,
    at timestamptz NOT NULL);
CREATE FUNCTION record_push_history() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO push_history (notification_id, device_id, at)
    VALUES (NEW.notification_id, NEW.device_id, clock_timestamp());
    RETURN NEW;
END $$;
CREATE TRIGGER push_history BEFORE INSERT ON recorded_pushes FOR EACH ROW EXECUTE FUNCTION record_push_history();
"""
