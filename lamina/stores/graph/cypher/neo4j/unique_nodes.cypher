// By name, so that one of the same name is found whatever the database calls its own.
CREATE CONSTRAINT lamina_node IF NOT EXISTS FOR (n:Node) REQUIRE n.id IS UNIQUE
