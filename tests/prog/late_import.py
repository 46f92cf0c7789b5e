"""A function imports what it needs when it is first called, in the middle of the loop."""

import torch

torch.set_num_threads(1)
values = torch.ones(8)


def parse():
    import xml.dom.minidom
    import xmlrpc.client

    return xml, xmlrpc


for i in range(5):
    values = values + i
    if i == 2:
        parse()
    values.sum()
print("done")
