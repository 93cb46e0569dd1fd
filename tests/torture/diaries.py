"""Triggers that write down what the tables of the service forget."""

STUDENTS = """
CREATE TABLE student_diary (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, student_id bigint NOT NULL, at timestamptz NOT NULL,
    available boolean NOT NULL, measured boolean NOT NULL, location geography);
CREATE INDEX ON student_diary (student_id, at);
CREATE FUNCTION keep_student_diary() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO student_diary (student_id, at, available, measured, location)
    VALUES (NEW.id, clock_timestamp(), NEW.available,
            TG_OP = 'INSERT' OR (OLD.completed, OLD.month) IS DISTINCT FROM (NEW.completed, NEW.month)
            OR OLD.location::text IS DISTINCT FROM NEW.location::text, NEW.location);
    RETURN NULL;
END $$;
CREATE TRIGGER student_diary AFTER INSERT OR UPDATE ON students FOR EACH ROW EXECUTE FUNCTION keep_student_diary();
"""

# A row that is there already is not inserted again, but the trigger hears of it: that is a push sent twice.
PUSHES = """
CREATE TABLE push_diary (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, notification_id uuid NOT NULL, device_id text,
    at timestamptz NOT NULL);
CREATE FUNCTION keep_push_diary() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO push_diary (notification_id, device_id, at)
    VALUES (NEW.notification_id, NEW.device_id, clock_timestamp());
    RETURN NEW;
END $$;
CREATE TRIGGER push_diary BEFORE INSERT ON recorded_pushes FOR EACH ROW EXECUTE FUNCTION keep_push_diary();
"""
