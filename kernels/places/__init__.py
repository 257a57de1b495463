"""Objects in object stores and on web servers, read as files are: by ranges of bytes, several at once, in bounded
memory.

The administrator's configuration names the places (`place`), and with which credentials each is read. `transport`
connects to checked addresses alone, `remote` reads ranges of one object, and `file` makes a file of it for decoders.
"""
