"""How the api listens: descriptors, connections and the heads of requests, bounded before anything is kept."""
