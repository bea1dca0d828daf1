"""The interactive session: ``objstore session``.

``words``         what a line means: a command, a question, nothing
``conversation``  one session and the place in it, and what each line does
``prompting``     where lines come from: prompt_toolkit, or the plain ``input`` without it
``completing``    what may be completed
``loop``          line by line until the end
"""
