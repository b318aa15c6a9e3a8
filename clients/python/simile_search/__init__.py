"""Client of Simile: exact top-k similarity and recommendation.

    import simile_search as simile

    films = simile.connect("localhost:50051").collection("films")
    answer = films.search(matrix, k=10, filter="year >= 1990")
    answer.ids, answer.scores  # [queries, 10]

aio has the same for asyncio, importing writes tables as a collection, exporting writes the answers of every item or user to a
file, testing starts a server for tests.
"""

from . import aio, exporting, importing, testing
from .answers import Answer, Hit
from .calls import Explanation, ExportPart, Row
from .client import Client, Collection, connect
from .errors import (Busy, DeadlineExceeded, InvalidRequest, InvalidVectors, NotAllowed, NotFound, NotReady, SimileError,
                     Unavailable)
from .queries import Blend, Diversity, Examples, GroupBy, Item, Query, Weighted
from .version import VERSION

__all__ = ["Answer", "Blend", "Busy", "Client", "Collection", "DeadlineExceeded", "Diversity", "Examples", "Explanation", "ExportPart", "GroupBy",
           "Hit", "InvalidRequest", "InvalidVectors", "Item", "NotAllowed", "NotFound", "NotReady", "Query", "Row", "SimileError",
           "Unavailable", "Weighted", "aio", "connect", "exporting", "importing", "testing"]
__version__ = VERSION
