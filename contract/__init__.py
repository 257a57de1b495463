"""The contract: the fields of requests and of results. The service, the workers and the client read the contract,
and none of them owns it."""
