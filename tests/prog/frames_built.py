"""A class that is built in a loop: its __init__ calls a function."""


def called():
    return 1


class Built:
    def __init__(self):
        self.value = called()


class Other:
    def __init__(self):
        self.value = (
            called()
        )


def main():
    for i in range(200):
        Built()
        Other()
        called()


main()
