"""HTTP: health, metrics and administration, as one app with an OpenAPI description at /openapi.json."""
