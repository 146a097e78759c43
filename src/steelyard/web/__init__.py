"""The viewer and the HTTP API: the store on loopback, for people and for programs."""
