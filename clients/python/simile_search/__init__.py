"""Client of Simile: exact top-k similarity and recommendation.

    import simile_search as simile

    films = simile.connect("localhost:50051").collection("films")
    answer = films.search(matrix, k=10, filter="year >= 1990")
    answer.ids, answer.scores  # [queries, 10]
"""

from .answers import Answer
from .client import Client, Collection, connect
from .errors import (Busy, DeadlineExceeded, InvalidRequest, InvalidVectors, NotAllowed, NotFound, NotReady, SimileError,
                     Unavailable)

__all__ = ["Answer", "Busy", "Client", "Collection", "DeadlineExceeded", "InvalidRequest", "InvalidVectors", "NotAllowed",
           "NotFound", "NotReady", "SimileError", "Unavailable", "connect"]
__version__ = "0.1.0"
