"""The public file formats, byte for byte, without a store.

=============  =============================================================================
``sd``         landed records written;  ``sd_reading``  read, with every rule of the format
``sf``         rounds written;  ``sf_reading``  read, with every rule of the format
``errors``     what is wrong with a file
``gojson``     JSON bytes as the public tool's serialiser writes them;  ``times``  its instants
=============  =============================================================================
"""
