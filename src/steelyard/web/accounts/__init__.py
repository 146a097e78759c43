"""A team's server: who asks, what they may do, and what they did.

permissions   the one table of what each role may do, for pages and API alike
passwords     slow hashes
access        who asks, and in which projects they may do what
sign_in       passwords, sessions, tokens: from a request to who asks
proxies       addresses and names that a proxy vouches for
oidc          signing in at an identity provider
gate          the middleware that asks all of them and writes the audit log
pages         signing in and out, the audit log
"""
