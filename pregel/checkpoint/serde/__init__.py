"""How values become bytes and come back equal: a closed table of types, no pickle, no import at load."""
